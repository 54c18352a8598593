import { basename } from 'node:path';
import { isObject, option, readOptions } from 'tillgate/internal';
import type { TableOf } from 'tillgate/internal';
import { declareGuards } from './app-routes';
import type { DeclaredGuard } from './app-routes';
import { auditApp } from './audit';
import type { RouteFinding } from './audit';
import { allOperations, basePathOf, ignoredPaths, loadDocument } from '../openapi/document';

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
  /** Mount path of a router that is audited alone: `/v1`. Default: the root. */
  readonly mountedAt?: string | undefined;
  /** Whether `authenticate()` is mounted elsewhere, before this app or router. Default: false. */
  readonly behindGate?: boolean | undefined;
  /**
   * Guards of other packages, each by itself or by its name, with the scopes that it requires; the app is taken to have a
   * gate of its own. Default: none, only guards of Tillgate are seen.
   */
  readonly guards?: readonly DeclaredGuard[] | undefined;
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
 * @param app - an app, or a router
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
  const { basePath, mountedAt, behindGate, guards, ignore } = readOptions('auditRoutes', options, {
    guards: option('an array of { handler, scopes } or { name, scopes }', readGuards, []),
    basePath: option.string(),
    mountedAt: option.string(),
    behindGate: option.boolean(false),
    ignore: PATHS,
  } satisfies TableOf<AuditRoutesOptions>);
  const [absent] = declareGuards(app, guards);
  if (absent) {
    throw new TypeError(`auditRoutes(): the guard ${absent.name ?? absent.handler.name} of "guards" is not in the app`);
  }
  const document = loadDocument(openapi);
  const operations = allOperations(document, basePath?.replace(/\/+$/, '') ?? basePathOf(document));
  const findings = auditApp(app, {
    document,
    names: { source: 'the app', document: typeof openapi === 'string' ? basename(openapi) : 'the document' },
    operations,
    mountedAt: mountedAt?.replace(/\/+$/, ''),
    // A gate of another package may let requests without a token pass.
    behindGate: behindGate ? 'strict' : guards.length > 0 ? 'optional' : 'none',
  });
  const isIgnored = ignoredPaths(ignore);
  return findings.filter(({ path }) => !isIgnored(path));
}

function readGuards(given: unknown): readonly DeclaredGuard[] | undefined {
  if (!Array.isArray(given)) return undefined;
  const fits = given.every((one: unknown) => {
    if (!isObject(one) || !Array.isArray(one['scopes']) || !one['scopes'].every((scope) => typeof scope === 'string'))
      return false;
    return typeof one['handler'] === 'function'
      ? !('name' in one)
      : typeof one['name'] === 'string' && one['name'] !== '';
  });
  return fits ? (given as DeclaredGuard[]) : undefined;
}
