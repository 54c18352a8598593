import { compareRoutes, compareScopes } from './compare';
import { describeRoutes } from './describe-routes';
import type { DescribedRoute } from './describe-routes';
import type { ContractDocument, LocatedOperation } from './document';
import { findingAt, sortFindings } from './finding';
import type { FindingNames, RouteFinding } from './finding';

/** What the routes of an app are compared with. */
export interface Audit {
  readonly names: FindingNames;
  readonly operations: readonly LocatedOperation[];
  /** Where a router is mounted: `/v1`. */
  readonly mountedAt?: string | undefined;
  /** Whether a gate runs before the app or router. */
  readonly behindGate?: boolean | undefined;
}

/** The result of an audit. */
export interface AuditOutcome {
  readonly findings: readonly RouteFinding[];
  /** The scopes of all guards. */
  readonly requiredScopes: readonly string[];
}

/**
 * Compares the routes, guards and gates of an app or router with operations.
 *
 * @throws TypeError when `app` is neither an app nor a router
 */
export function auditGuards(app: object, { names, operations, mountedAt, behindGate = false }: Audit): AuditOutcome {
  const knownPaths = [...new Set(operations.map(({ path }) => path))];
  const { routes: read, served, unreadable } = describeRoutes(app, { mountedAt, knownPaths });
  const routes = behindGate ? read.map((route) => ({ ...route, gate: gateOf(route) })) : read;
  const findings = [...compareRoutes(names, routes, operations, served), ...unreadable.map(unreadableAt)];
  return {
    findings: sortFindings(findings),
    requiredScopes: [...new Set(routes.flatMap(({ requires }) => requires.flat()))],
  };
}

/**
 * Compares routes, guards, gates and scopes of an app or router with a document.
 *
 * @throws TypeError when `app` is neither an app nor a router
 */
export function auditApp(app: object, document: ContractDocument, audit: Audit): readonly RouteFinding[] {
  const { findings, requiredScopes } = auditGuards(app, audit);
  return [...findings, ...sortFindings(compareScopes(audit.names, document, audit.operations, requiredScopes))];
}

function unreadableAt(path: string): RouteFinding {
  const fix = 'mount a Router() at a path of plain text, or audit it separately';
  return findingAt({ method: '*', path }, 'unreadable-route', `the routes mounted here cannot be read; ${fix}`);
}

function gateOf({ gate }: DescribedRoute): DescribedRoute['gate'] {
  return gate === 'none' ? 'strict' : gate;
}
