import type { DescribedRoute } from './describe-routes';
import type { LocatedOperation } from './document';
import type { FindingNames, RouteFinding, RouteFindingKind } from './finding';
import { shapeOf } from './probe';
import { bothOf, describeAlternatives } from './requirement';
import type { Alternatives } from './requirement';

/** Holds routes against the operations of a document: which are there, and what guards them. */
export function compareRoutes(
  names: FindingNames,
  routes: readonly DescribedRoute[],
  operations: readonly LocatedOperation[],
  served: readonly string[] = [],
): readonly RouteFinding[] {
  const documented = byShape(operations);
  const known = byShape(routes);
  const extra = routes.filter((route) => isUndocumented(route, documented(route)));
  const missing = operations.filter((operation) => {
    return !isAnswered(operation, known(operation)) && !served.includes(operation.path);
  });
  return [
    ...extra.map((route) => undocumented(names, route)),
    ...missing.map(({ method, path }): RouteFinding => {
      const detail = `${names.document} has it, ${names.source} has not; add the route, or remove the operation`;
      return { kind: 'missing-route', method, path, detail };
    }),
    ...routes.flatMap((route) =>
      documented(route)
        .filter(({ method }) => method === route.method || route.method === 'ALL')
        .flatMap((operation) => compareGuards(names, route, operation)),
    ),
    ...routes.flatMap((route) => requireGate(names, route)),
  ];
}

/** Paths that differ in nothing but the names of their parameters are one path to Express. */
function byShape<At extends { readonly path: string }>(all: readonly At[]): (at: { readonly path: string }) => At[] {
  const groups = new Map<string, At[]>();
  for (const one of all) {
    const shape = shapeOf(one.path);
    groups.set(shape, [...(groups.get(shape) ?? []), one]);
  }
  return ({ path }) => groups.get(shapeOf(path)) ?? [];
}

function isUndocumented({ method }: DescribedRoute, operations: readonly LocatedOperation[]): boolean {
  if (method === 'OPTIONS') return false;
  if (method === 'ALL') return operations.length === 0;
  return !operations.some((one) => one.method === method || (method === 'HEAD' && one.method === 'GET'));
}

/** Express answers HEAD with the route for GET, and OPTIONS with the list of methods. */
function isAnswered({ method }: LocatedOperation, routes: readonly DescribedRoute[]): boolean {
  if (method === 'OPTIONS') return routes.length > 0;
  const fitting = method === 'HEAD' ? ['HEAD', 'GET', 'ALL'] : [method, 'ALL'];
  return routes.some((route) => fitting.includes(route.method));
}

function undocumented({ source, document }: FindingNames, { method, path }: DescribedRoute): RouteFinding {
  const detail = `${source} has it, ${document} has not; document the operation, or remove the route`;
  return { kind: 'undocumented-route', method, path, detail };
}

function compareGuards(
  names: FindingNames,
  route: DescribedRoute,
  { method, path, access, security }: LocatedOperation,
): readonly RouteFinding[] {
  const { source, document } = names;
  const { gate, requires, tooLate } = route;
  const find = (kind: RouteFindingKind, detail: string): readonly RouteFinding[] => [{ kind, method, path, detail }];
  const guarded = requires.length > 0;
  const [ours, theirs] = [sayRequirement(requires), sayRequirement(security)];

  if (access === 'other') return [];
  if (access === 'anybody') {
    const says = `${document} says that anybody may call it`;
    if (guarded) {
      const fix = 'remove the guard, or give the operation its security';
      return find('guarded-public-route', `${source} requires ${ours}, ${says}; ${fix}`);
    }
    if (gate !== 'strict') return [];
    const fix = 'put it in front of authenticate(), or give the operation its security';
    return find('guarded-public-route', `in ${source} it stands behind authenticate(), ${says}; ${fix}`);
  }

  const enough = guarded ? ours === theirs : gate === 'strict' && security.some((scopes) => scopes.length === 0);
  if (enough) return [];
  if (tooLate.length > 0 && (!guarded || sayRequirement(bothOf(requires, tooLate)) === theirs)) {
    const late = sayRequirement(tooLate);
    const fix = 'put it in front of the handler';
    return find('guard-after-handler', `in ${source} the guard for ${late} stands behind the handler; ${fix}`);
  }
  if (guarded) {
    return find('wrong-requirement', `${source} requires ${ours}, ${document} says ${theirs}; make them equal`);
  }
  const got = gate === 'none' ? `nothing guards it in ${source}` : `in ${source} every valid token reaches it`;
  return find('unguarded-route', `${got}, ${document} says ${theirs}; put requireScope() in front of its handler`);
}

/** A guard that no gate stands before answers every request with 500. */
function requireGate({ source }: FindingNames, { method, path, requires, gate }: DescribedRoute): RouteFinding[] {
  if (requires.length === 0 || gate !== 'none') return [];
  const detail = `in ${source} no authenticate() stands before its guard, so that every call is answered 500; mount it first`;
  return [{ kind: 'outside-gate', method, path, detail }];
}

function sayRequirement(alternatives: Alternatives): string {
  return describeAlternatives(alternatives) || 'a token, whatever its scopes';
}
