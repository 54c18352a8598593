import type { GateStatus } from '../core/gate-status';
import type * as Explain from './diagnosis/explain';
import type { Explanation } from './diagnosis/explain';
import type * as Metadata from './metadata';
import type * as ReportOnly from './report-only';
import type { Middleware } from './request-state';

/* eslint-disable @typescript-eslint/no-require-imports -- each is loaded by its first call: most processes call none */

/**
 * Puts a gate or a guard on trial, next to the middleware that decides today: it calls `next()` for every request, changes neither
 * request nor response, and protects nothing. Where it would have decided otherwise, the log says so when the response has
 * ended; `tillgate report` sums that up. A guard on trial asks the nearest gate before it, on trial or not.
 *
 * @param middleware - what `authenticate()` returned, or a guard such as `requireScope('orders:read')`
 * @returns a middleware; the `close()` of a gate on trial is that of the gate
 * @throws TypeError for anything else
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { authenticate, reportOnly, requireScope } from 'tillgate';
 * import { checkToken } from './old-middleware';
 *
 * const app = express();
 * const gate = authenticate({ issuer: 'https://login.example.com', audience: 'https://api.example.com' });
 * app.use(reportOnly(gate), checkToken);
 * app.get('/orders', reportOnly(requireScope('orders:read')), (req, res) => res.json([]));
 * ```
 */
export function reportOnly(
  middleware: Middleware & { close(): Promise<void> },
): Middleware & { close(): Promise<void> };
export function reportOnly(middleware: Middleware): Middleware;
export function reportOnly(...args: readonly unknown[]): Middleware {
  return (require('./report-only') as typeof ReportOnly).reportOnlyMiddleware(args);
}

/**
 * Makes the middleware that serves the protected resource metadata (RFC 9728): from it a client that knows only the
 * API's URL learns the authorization server. Pages of any origin may read it. Mount it at the root of the app, before
 * any gate.
 *
 * @param gate - what `authenticate()` returned, with the option `resource`; its issuers, its `challengeScopes` and its kinds
 *   of `possession` are published
 * @throws TypeError for anything else
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { authenticate, protectedResourceMetadata } from 'tillgate';
 *
 * const gate = authenticate({
 *   issuer: 'https://login.example.com',
 *   audience: 'https://api.example.com',
 *   resource: 'https://api.example.com',
 * });
 * const app = express();
 * app.use(protectedResourceMetadata(gate));
 * app.use('/v1', gate);
 * ```
 */
export function protectedResourceMetadata(gate: Middleware): Middleware {
  return (require('./metadata') as typeof Metadata).metadataMiddleware(gate);
}

/**
 * Explains how a gate decides about a token: every check in order, and the first that failed. For developers and
 * operators, never for a response to a caller.
 *
 * @param need - what decides: a gate, and what the route requires
 * @throws TypeError when an argument is wrong
 *
 * @example
 * ```ts
 * import { authenticate, explain } from 'tillgate';
 *
 * const gate = authenticate({ issuer: 'https://login.example.com', audience: 'https://api.example.com' });
 * const { accepted, checks } = await explain('eyJhbGciOi...', { gate, scopes: ['orders:read'] });
 * ```
 */
export function explain(
  token: string,
  need: {
    /** What `authenticate()` returned. Default: a gate made from the `TILLGATE_*` variables, closed afterwards. */
    readonly gate?: { status(): GateStatus } | undefined;
    /** All of them, or any one with `{ anyOf: [...] }`. Default: none. */
    readonly scopes?: readonly string[] | { readonly anyOf: readonly string[] } | undefined;
  } = {},
): Promise<Explanation> {
  return (require('./diagnosis/explain') as typeof Explain).explainToken(token, need);
}
