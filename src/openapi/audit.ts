import { compareRoutes } from './compare-routes';
import { compareScopes } from './compare-scopes';
import { describeRoutes } from './describe-routes';
import type { DescribedRoute } from './describe-routes';
import type { ContractDocument, LocatedOperation } from './document';
import { sortFindings } from './finding';
import type { FindingNames, RouteFinding } from './finding';

/** What an app is held against, and how. */
export interface Audit {
  readonly names: FindingNames;
  readonly operations: readonly LocatedOperation[];
  /** Where a router is mounted: `/v1`. */
  readonly mountedAt?: string | undefined;
  /** Whether a gate stands before it that the app itself does not show. */
  readonly behindGate?: boolean | undefined;
}

/** What came of it. */
export interface AuditOutcome {
  readonly findings: readonly RouteFinding[];
  /** What the guards ask for, taken together. */
  readonly requiredScopes: readonly string[];
}

/**
 * Holds the routes of an app or router against operations: existence, guards, gates.
 *
 * @throws TypeError when it is no app and no router
 */
export function auditGuards(app: object, { names, operations, mountedAt, behindGate = false }: Audit): AuditOutcome {
  const knownPaths = [...new Set(operations.map(({ path }) => path))];
  const { routes: read, served, unreadable } = describeRoutes(app, { mountedAt, knownPaths });
  const routes = behindGate ? read.map(standBehindGate) : read;
  const findings = [...compareRoutes(names, routes, operations, served), ...unreadable.map(toFinding)];
  return {
    findings: sortFindings(findings),
    requiredScopes: [...new Set(routes.flatMap(({ requires }) => requires.flat()))],
  };
}

/**
 * Holds routes, guards, gates and scopes of an app or router against a document.
 *
 * @throws TypeError when it is no app and no router
 */
export function auditApp(app: object, document: ContractDocument, audit: Audit): readonly RouteFinding[] {
  const { findings, requiredScopes } = auditGuards(app, audit);
  return [...findings, ...sortFindings(compareScopes(audit.names, document, audit.operations, requiredScopes))];
}

function standBehindGate(route: DescribedRoute): DescribedRoute {
  return route.gate === 'none' ? { ...route, gate: 'strict' } : route;
}

function toFinding(path: string): RouteFinding {
  const detail =
    'what is mounted here cannot be read from outside; mount a Router() at a path of plain text, or audit it by itself';
  return { kind: 'unreadable-route', method: '*', path, detail };
}
