import { describeRoutes } from './app-routes';
import type { DescribedRoute } from './app-routes';
import { bothOf, declaredScopes, describeAlternatives } from '../openapi/document';
import type { Alternatives, ContractDocument, LocatedOperation } from '../openapi/document';
import { shapeOf } from '../openapi/path-template';

/** How the routes of an app and its OpenAPI document can differ. */
export type RouteFindingKind =
  | 'guard-after-handler'
  | 'guarded-public-route'
  | 'missing-route'
  | 'outside-gate'
  | 'undeclared-scope'
  | 'undocumented-route'
  | 'unguarded-route'
  | 'unreadable-route'
  | 'unused-scope'
  | 'wrong-requirement';

/** One difference between the routes of an app and its OpenAPI document. */
export interface RouteFinding {
  readonly kind: RouteFindingKind;
  /** `GET`; `ALL` for a route that accepts every method; `*` where no single route is meant. */
  readonly method: string;
  /** As OpenAPI writes it: `/v1/orders/{id}`; `*` where no single route is meant. */
  readonly path: string;
  /** What was got, what was expected, and what to do. */
  readonly detail: string;
}

/** Names of the two sides in findings: `the app`, `openapi.yaml`. */
type FindingNames = Readonly<Record<'source' | 'document', string>>;

/** Makes a finding about one route or operation. */
function findingAt(
  { method, path }: { readonly method: string; readonly path: string },
  kind: RouteFindingKind,
  detail: string,
): RouteFinding {
  return { kind, method, path, detail };
}

/** A finding as one line of text. */
export function describeFinding({ method, path, detail }: RouteFinding): string {
  return path === '*' ? detail : `${method} ${path}: ${detail}`;
}

/** Sorts findings by path, method and kind: the order of routes makes no difference. */
function sortFindings(findings: readonly RouteFinding[]): readonly RouteFinding[] {
  const keyOf = ({ kind, method, path, detail }: RouteFinding): string =>
    [path === '*' ? '1' : '0', path, method, kind, detail].join('\n');
  return findings.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/**
 * Compares the routes, guards and gates of an app or router with operations.
 *
 * @throws TypeError when `app` is neither an app nor a router
 */
export function auditApp(
  app: object,
  audit: {
    readonly names: FindingNames;
    readonly operations: readonly LocatedOperation[];
    /** Declares scopes, which are compared with those of the guards. */
    readonly document: ContractDocument;
    /** Where a router is mounted: `/v1`. */
    readonly mountedAt: string | undefined;
    /** The gate that runs before the app or router, or that cannot be seen. */
    readonly behindGate: DescribedRoute['gate'];
  },
): readonly RouteFinding[] {
  const { names, operations, document, mountedAt, behindGate } = audit;
  const knownPaths = [...new Set(operations.map(({ path }) => path))];
  const { routes: read, served, unreadable } = describeRoutes(app, mountedAt, knownPaths);
  const routes = read.map((route) => ({ ...route, gate: route.gate === 'none' ? behindGate : route.gate }));
  const required = [...new Set(routes.flatMap(({ requires }) => requires.flat()))];
  const findings = [
    ...compareRoutes(names, routes, operations, { served, unreadable }),
    ...unreadable.map(unreadableAt),
    ...compareScopes(names, document, operations, required),
  ];
  const isGuarded = routes.some(
    ({ gate, requires, tooLate }) => gate !== 'none' || requires.length + tooLate.length > 0,
  );
  return sortFindings(isGuarded ? findings : withoutGuards(names, findings));
}

/** One finding in place of one for each operation, where the guards of an app cannot be seen. */
function withoutGuards({ source }: FindingNames, findings: readonly RouteFinding[]): readonly RouteFinding[] {
  const others = findings.filter(({ kind }) => kind !== 'unguarded-route' && kind !== 'unused-scope');
  const count = findings.filter(({ kind }) => kind === 'unguarded-route').length;
  if (count < 2) return findings;
  const what = `no guard of Tillgate is in ${source}, and ${count} operations need one`;
  const fix =
    "name guards of other packages: auditRoutes(app, document, { guards: [{ handler, scopes: ['orders:read'] }] })";
  return [...others, findingAt({ method: '*', path: '*' }, 'unguarded-route', `${what}; ${fix}`)];
}

function unreadableAt(path: string): RouteFinding {
  const fix = 'mount a Router() at a path of plain text, or audit it separately';
  return findingAt({ method: '*', path }, 'unreadable-route', `the routes mounted here cannot be read; ${fix}`);
}

/** Compares routes with the operations of a document: which exist, and what guards them. */
function compareRoutes(
  names: FindingNames,
  routes: readonly DescribedRoute[],
  operations: readonly LocatedOperation[],
  { served, unreadable }: Pick<ReturnType<typeof describeRoutes>, 'served' | 'unreadable'>,
): readonly RouteFinding[] {
  const { source, document } = names;
  const documented = byShape(operations);
  const known = byShape(routes);
  const extra = routes.filter((route) => isUndocumented(route, documented(route)));
  // Behind a mounted app whose routes cannot be read, an operation is not known to be missing.
  const mayBeAt = (path: string): boolean =>
    served.includes(path) || unreadable.some((mount) => mount === '(unreadable)' || path.startsWith(`${mount}/`));
  const missing = operations.filter((one) => !hasRoute(one, known(one)) && !mayBeAt(one.path));
  const outside = routes.filter(({ requires, gate }) => requires.length > 0 && gate === 'none');
  const undocumented = `${source} has it, ${document} does not; document the operation, or remove the route`;
  const withoutRoute = `${document} has it, ${source} does not; add the route, or remove the operation`;
  const ungated = `in ${source} no authenticate() runs before its guard, so that every request gets 500; mount it first`;
  return [
    ...extra.map((route) => findingAt(route, 'undocumented-route', undocumented)),
    ...missing.map((operation) => findingAt(operation, 'missing-route', withoutRoute)),
    ...outside.map((route) => findingAt(route, 'outside-gate', ungated)),
    ...routes.flatMap((route) =>
      documented(route)
        .filter(({ method }) => method === route.method || route.method === 'ALL')
        .flatMap((operation) => compareGuards(names, route, operation)),
    ),
  ];
}

/** Groups by path: names of parameters make no difference to Express. */
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

/** Express responds to HEAD with the route for GET, and to OPTIONS with the list of methods. */
function hasRoute({ method }: LocatedOperation, routes: readonly DescribedRoute[]): boolean {
  if (method === 'OPTIONS') return routes.length > 0;
  const fitting = method === 'HEAD' ? ['HEAD', 'GET', 'ALL'] : [method, 'ALL'];
  return routes.some((route) => fitting.includes(route.method));
}

function compareGuards(
  { source, document }: FindingNames,
  { gate, requires, tooLate }: DescribedRoute,
  operation: LocatedOperation,
): readonly RouteFinding[] {
  const { access, security } = operation;
  const find = (kind: RouteFindingKind, detail: string): readonly RouteFinding[] => [
    findingAt(operation, kind, detail),
  ];
  const guarded = requires.length > 0;
  const [ours, theirs] = [describeRequirement(requires), describeRequirement(security)];

  if (access === 'other') return [];
  if (access === 'anybody') {
    const says = `${document} says that it needs no token`;
    if (guarded) {
      const fix = 'remove the guard, or give the operation its security';
      return find('guarded-public-route', `${source} requires ${ours}, ${says}; ${fix}`);
    }
    if (gate !== 'strict') return [];
    const fix = 'mount it before authenticate(), or give the operation its security';
    return find('guarded-public-route', `in ${source} it is mounted after authenticate(), ${says}; ${fix}`);
  }

  const enough = guarded ? ours === theirs : gate === 'strict' && security.some((scopes) => scopes.length === 0);
  if (enough) return [];
  if (tooLate.length > 0 && (!guarded || describeRequirement(bothOf(requires, tooLate)) === theirs)) {
    const late = describeRequirement(tooLate);
    return find('guard-after-handler', `in ${source} the guard for ${late} is after the handler; put it before`);
  }
  if (guarded) {
    return find('wrong-requirement', `${source} requires ${ours}, ${document} says ${theirs}; make them equal`);
  }
  const got = gate === 'none' ? `nothing guards it in ${source}` : `in ${source} every valid token reaches it`;
  return find('unguarded-route', `${got}, ${document} says ${theirs}; put requireScope() before its handler`);
}

function describeRequirement(alternatives: Alternatives): string {
  return describeAlternatives(alternatives) || 'a token, whatever its scopes';
}

/** Compares required scopes with declared ones; a document without any leaves them to the authorization server. */
function compareScopes(
  { source, document: name }: FindingNames,
  document: ContractDocument,
  operations: readonly LocatedOperation[],
  required: readonly string[],
): readonly RouteFinding[] {
  const declared = new Set(declaredScopes(document));
  if (declared.size === 0) return [];
  const optional = operations.flatMap(({ operation }) => operation['x-optional-scopes'] ?? []);
  const used = new Set([...operations.flatMap(({ security }) => security.flat()), ...optional]);
  const ours = new Set([...required, ...optional]);
  const where = `components.securitySchemes of ${name}`;
  const nowhere = { method: '*', path: '*' };
  const undeclared = [...new Set([...ours, ...used])].filter((scope) => !declared.has(scope));
  const unused = [...declared].filter((scope) => !used.has(scope) || !ours.has(scope));
  return [
    ...undeclared.map((scope) => {
      const fix = 'so that no client may have it; declare it there with a description';
      return findingAt(nowhere, 'undeclared-scope', `scope ${scope}: missing in ${where}, ${fix}`);
    }),
    ...unused.map((scope) => {
      const fix = used.has(scope) ? `${source} does not require it; require` : 'no operation uses it; use';
      return findingAt(nowhere, 'unused-scope', `scope ${scope}: declared in ${where}, but ${fix} it, or remove it`);
    }),
  ];
}
