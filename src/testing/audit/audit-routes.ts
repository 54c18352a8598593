import { basename } from 'node:path';
import { option, readOptions } from 'tillgate/internal';
import type { TableOf } from 'tillgate/internal';
import { describeRoutes } from './app-routes';
import type { DescribedRoute } from './app-routes';
import { allOperations, basePathOf, bothOf, declaredScopes, describeAlternatives } from '../openapi/document';
import { ignoredPaths, loadDocument } from '../openapi/document';
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

/** A list of paths. */
export const PATHS = option(
  'an array of paths',
  (given) => (Array.isArray(given) ? (given as string[]) : undefined),
  [],
);

/** Options of {@link auditRoutes}. */
export interface AuditRoutesOptions {
  /** Prefix of every path of the document. Default: the path of its first server. */
  readonly basePath?: string | undefined;
  /** Paths to skip, as findings write them; `/docs/*` for everything below. Default: none. */
  readonly ignore?: readonly string[] | undefined;
}

/**
 * Compares the routes of an Express 4 or 5 app with its OpenAPI 3 document: undocumented routes, operations without a
 * route, guards whose requirement differs from the operation's `security`, missing and superfluous guards, guards after
 * the handler or without `authenticate()` before them, and scopes that no route requires or no client can have. It reads
 * routers, including nested ones and those with parameters in their path, and calls nothing.
 *
 * Skips operations with `servers` of their own. Operations protected by another scheme than bearer tokens need a route,
 * but their guards are not checked. `all()` on every path is taken for the 404 handler, `all()` along with single
 * methods for a preparation of their handlers. Responses of plain middleware cannot be seen.
 *
 * @param app - an app, or a router with its gate
 * @param openapi - the document: a YAML or JSON file, or its parsed content
 * @returns the findings, in an order that does not depend on the order of routes; empty when there are none
 * @throws TypeError when `app` is neither an app nor a router, or an option is wrong
 * @throws ConfigurationError when the document cannot be read
 *
 * @example
 * ```ts
 * import { auditRoutes } from '@tillgate/testing';
 * import { app } from '../../app';
 *
 * it('has a guard on every route, as openapi.yaml says', () => {
 *   expect(auditRoutes(app, 'openapi.yaml')).toEqual([]);
 * });
 * ```
 */
export function auditRoutes(
  app: object,
  openapi: string | object,
  options: AuditRoutesOptions = {},
): readonly RouteFinding[] {
  const { basePath, ignore } = readOptions('auditRoutes', options, {
    basePath: option.string(),
    ignore: PATHS,
  } satisfies TableOf<AuditRoutesOptions>);
  const document = loadDocument(openapi);
  const name = typeof openapi === 'string' ? basename(openapi) : 'the document';
  const operations = allOperations(document, basePath?.replace(/\/+$/, '') ?? basePathOf(document));
  const read = describeRoutes(app, [...new Set(operations.map(({ path }) => path))]);
  const isIgnored = ignoredPaths(ignore);
  const required = read.routes.flatMap(({ requires }) => requires.flat());
  const findings = [
    ...compareRoutes(name, read, operations),
    ...read.unreadable.map(unreadableAt),
    ...compareScopes(name, document, operations, required),
  ];
  return findings.filter(({ path }) => !isIgnored(path)).sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** A finding as one line of text. */
export function describeFinding({ method, path, detail }: RouteFinding): string {
  return path === '*' ? detail : `${method} ${path}: ${detail}`;
}

/** Findings are sorted by path, method and kind: the order of routes makes no difference. */
function keyOf({ kind, method, path, detail }: RouteFinding): string {
  return [path === '*' ? '1' : '0', path, method, kind, detail].join('\n');
}

type Place = Pick<RouteFinding, 'method' | 'path'>;

/** Makes a finding about one route or operation. */
function findingAt({ method, path }: Place, kind: RouteFindingKind, detail: string): RouteFinding {
  return { kind, method, path, detail };
}

function unreadableAt(path: string): RouteFinding {
  const fix = 'mount a Router() at a path of plain text, or audit it separately';
  return findingAt({ method: '*', path }, 'unreadable-route', `the routes mounted here cannot be read; ${fix}`);
}

/** Compares routes with the operations of a document: which exist, and what guards them. */
function compareRoutes(
  document: string,
  { routes, served, unreadable }: ReturnType<typeof describeRoutes>,
  operations: readonly LocatedOperation[],
): readonly RouteFinding[] {
  const documented = byShape(operations);
  const known = byShape(routes);
  const extra = routes.filter((route) => isUndocumented(route, documented(route)));
  // Behind a mounted app whose routes cannot be read, an operation is not known to be missing.
  const mayBeAt = (path: string): boolean =>
    served.includes(path) || unreadable.some((mount) => mount === '(unreadable)' || path.startsWith(`${mount}/`));
  const missing = operations.filter((one) => !hasRoute(one, known(one)) && !mayBeAt(one.path));
  const outside = routes.filter(({ requires, gate }) => requires.length > 0 && gate === 'none');
  const undocumented = `the app has it, ${document} does not; document the operation, or remove the route`;
  const withoutRoute = `${document} has it, the app does not; add the route, or remove the operation`;
  const ungated = 'in the app no authenticate() runs before its guard, so that every request gets 500; mount it first';
  return [
    ...extra.map((route) => findingAt(route, 'undocumented-route', undocumented)),
    ...missing.map((operation) => findingAt(operation, 'missing-route', withoutRoute)),
    ...outside.map((route) => findingAt(route, 'outside-gate', ungated)),
    ...routes.flatMap((route) =>
      documented(route)
        .filter(({ method }) => method === route.method || route.method === 'ALL')
        .flatMap((operation) => compareGuards(document, route, operation)),
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

function compareGuards(document: string, route: DescribedRoute, operation: LocatedOperation): readonly RouteFinding[] {
  const { gate, requires, tooLate } = route;
  const { access, security } = operation;
  const find = (kind: RouteFindingKind, detail: string) => [findingAt(operation, kind, detail)];
  const guarded = requires.length > 0;
  const [ours, theirs] = [describeRequirement(requires), describeRequirement(security)];

  if (access === 'other') return [];
  if (access === 'anybody') {
    const says = `${document} says that it needs no token`;
    if (guarded) {
      const fix = 'remove the guard, or give the operation its security';
      return find('guarded-public-route', `the app requires ${ours}, ${says}; ${fix}`);
    }
    if (gate !== 'strict') return [];
    const fix = 'mount it before authenticate(), or give the operation its security';
    return find('guarded-public-route', `in the app it is mounted after authenticate(), ${says}; ${fix}`);
  }

  const enough = guarded ? ours === theirs : gate === 'strict' && security.some((scopes) => scopes.length === 0);
  if (enough) return [];
  if (tooLate.length > 0 && (!guarded || describeRequirement(bothOf(requires, tooLate)) === theirs)) {
    const late = describeRequirement(tooLate);
    return find('guard-after-handler', `in the app the guard for ${late} is after the handler; put it before`);
  }
  if (guarded) {
    return find('wrong-requirement', `the app requires ${ours}, ${document} says ${theirs}; make them equal`);
  }
  const got = gate === 'none' ? 'nothing guards it in the app' : 'in the app every valid token reaches it';
  return find('unguarded-route', `${got}, ${document} says ${theirs}; put requireScope() before its handler`);
}

function describeRequirement(alternatives: Alternatives): string {
  return describeAlternatives(alternatives) || 'a token, whatever its scopes';
}

/** Compares required scopes with declared ones; a document without any leaves them to the authorization server. */
function compareScopes(
  name: string,
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
      const fix = used.has(scope) ? 'the app does not require it; require' : 'no operation uses it; use';
      return findingAt(nowhere, 'unused-scope', `scope ${scope}: declared in ${where}, but ${fix} it, or remove it`);
    }),
  ];
}
