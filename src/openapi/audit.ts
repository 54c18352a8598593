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
  /** Declares scopes, which are compared with those of the guards. Default: scopes are not compared. */
  readonly document?: ContractDocument | undefined;
  /** Where a router is mounted: `/v1`. */
  readonly mountedAt?: string | undefined;
  /** Whether a gate runs before the app or router. */
  readonly behindGate?: boolean | undefined;
}

/**
 * Compares the routes, guards and gates of an app or router with operations.
 *
 * @throws TypeError when `app` is neither an app nor a router
 */
export function auditApp(app: object, audit: Audit): readonly RouteFinding[] {
  const { names, operations, document, mountedAt, behindGate = false } = audit;
  const knownPaths = [...new Set(operations.map(({ path }) => path))];
  const { routes: read, served, unreadable } = describeRoutes(app, mountedAt, knownPaths);
  const routes = behindGate ? read.map((route) => ({ ...route, gate: gateOf(route) })) : read;
  const required = [...new Set(routes.flatMap(({ requires }) => requires.flat()))];
  return sortFindings([
    ...compareRoutes(names, routes, operations, served),
    ...unreadable.map(unreadableAt),
    ...(document ? compareScopes(names, document, operations, required) : []),
  ]);
}

function gateOf({ gate }: DescribedRoute): DescribedRoute['gate'] {
  return gate === 'none' ? 'strict' : gate;
}

function unreadableAt(path: string): RouteFinding {
  const fix = 'mount a Router() at a path of plain text, or audit it separately';
  return findingAt({ method: '*', path }, 'unreadable-route', `the routes mounted here cannot be read; ${fix}`);
}
