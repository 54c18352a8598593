import type { Auth } from '../gate/options';
import { bearerToken } from '../token/bearer';
import { authOf, stateOf } from './request-state';
import type { GateRequest } from './request-state';

/** The caller as `AuthInfo` of `@modelcontextprotocol/sdk`. */
export interface AuthInfo extends Auth {
  /** Not enumerable, so that a log of this object does not contain it. */
  readonly token: string;
  scopes: string[];
  /** `exp` in seconds since the epoch. */
  readonly expiresAt: number;
  /** The option `resource` of the gate. */
  readonly resource?: URL;
  /** The members of `req.auth`, for tools: the SDK types no others. */
  readonly extra: Record<string, unknown>;
}

/**
 * The caller of a request that a gate has accepted, as the SDK of the Model Context Protocol wants it in `req.auth`; its
 * tools get it as `authInfo`. `undefined` where `authOf()` is.
 *
 * @throws AuthError when the Authorization header was removed after the gate
 *
 * @example
 * ```ts
 * import { Router, json } from 'express';
 * import { authInfo, requireScope } from 'tillgate';
 * import { transport } from './transport';
 *
 * const mcp = Router();
 * mcp.post('/mcp', requireScope('tools'), json(), (req, res) =>
 *   transport.handleRequest(Object.assign(req, { auth: authInfo(req) }), res, req.body),
 * );
 * ```
 */
export function authInfo(req: object): AuthInfo | undefined {
  const auth = authOf(req);
  if (!auth) return undefined;
  const resource = stateOf(req)?.gate.resource;
  const info = {
    ...auth,
    scopes: [...auth.scopes],
    expiresAt: Math.floor(auth.expiresAtMs / 1000),
    ...(resource !== undefined && { resource: new URL(resource) }),
    extra: { ...auth },
  };
  return Object.defineProperty(info, 'token', { value: bearerToken(req as GateRequest, true) }) as typeof info & {
    readonly token: string;
  };
}
