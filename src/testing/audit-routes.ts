import { basename } from 'node:path';
import { readOptions } from '../core/options';
import { auditApp } from '../openapi/audit';
import { allOperations, basePathOf } from '../openapi/document';
import type { RouteFinding } from '../openapi/finding';
import { ignoredPaths } from '../openapi/ignored-paths';
import { loadDocument } from '../openapi/load';

/** Options of {@link auditRoutes}. */
export interface AuditRoutesOptions {
  /** What stands before every path of the document. Default: the path of its first server. */
  readonly basePath?: string | undefined;
  /** Where a router is mounted that is audited by itself: `/v1`. Default: at the root. */
  readonly mountedAt?: string | undefined;
  /** Whether somebody else mounts `authenticate()` in front of it. Default: false. */
  readonly behindGate?: boolean | undefined;
  /** Paths to pass over, as findings write them; `/docs/*` for all below. Default: none. */
  readonly ignore?: readonly string[] | undefined;
}

/**
 * Holds the routes of an Express 4 or 5 app against its OpenAPI 3 document: routes that are not documented, operations
 * without a route, guards that ask for something else than the operation's `security`, guards that are missing, too
 * many, behind the handler or without `authenticate()` before them, and scopes that nobody requires or may have.
 * Nothing is called: routers are read, nested ones and those with parameters in their path too.
 *
 * Operations with `servers` of their own are served elsewhere and passed over. What is protected by another scheme than
 * bearer tokens is looked for, its guards are not judged. `all()` on every path is taken for the answer to what does not
 * exist, and `all()` beside single methods for their prelude. What a plain middleware answers cannot be seen.
 *
 * @param app - an app, or a router
 * @param openapi - the document: a file of YAML or JSON, or what was read from one
 * @returns what is wrong, in an order that does not depend on the order of routes; empty when all is well
 * @throws TypeError when it is no app and no router, or an option is wrong
 * @throws ConfigurationError when the document cannot be read
 *
 * @example
 * ```ts
 * import { auditRoutes } from 'tillgate/testing';
 * import { app } from '../app';
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
  const read = readOptions('auditRoutes', options, ['basePath', 'mountedAt', 'behindGate', 'ignore']);
  const { ignore = [] } = options;
  if (!Array.isArray(ignore)) read.refuse('ignore', 'an array of paths');
  const document = loadDocument(openapi);
  const pathOf = (key: 'basePath' | 'mountedAt'): string | undefined => read.string(key)?.replace(/\/+$/, '');
  const operations = allOperations(document, pathOf('basePath') ?? basePathOf(document));
  const findings = auditApp(app, document, {
    names: { source: 'the app', document: typeof openapi === 'string' ? basename(openapi) : 'the document' },
    operations,
    mountedAt: pathOf('mountedAt'),
    behindGate: read.boolean('behindGate', false),
  });
  const isIgnored = ignoredPaths(ignore);
  return findings.filter(({ path }) => !isIgnored(path));
}
