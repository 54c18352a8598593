import type { RequestHandler } from 'express';
import { foreignCaller } from '../core/urls';
import type { ForeignCaller } from '../core/urls';
import { equalTexts } from './client';
import type { Context } from './context';
import { RequestError } from './errors';
import { ADMIN_QUOTA, addressOf } from './limits';

/**
 * Makes the guard of the endpoints for operators. With an admin token, the caller must send it, and an address may send
 * 10 wrong ones per minute; without one, requests must come from this machine, directly, and not from a page of another
 * origin.
 */
export function adminGuard({ settings: { adminToken }, limits: { wrongAdminTokens } }: Context): RequestHandler {
  if (adminToken === undefined) return requireThisMachine;

  return async function requireAdminToken(req, res, next) {
    const presented = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? '')?.[1];
    // RFC 6750 section 3.1: no error code when the request has no credentials.
    if (presented === undefined) throw refusal('missing_token');
    const wrong = await wrongAdminTokens.getKey(addressOf(req));
    // Past the limit the right one is refused too: else guessing could go on.
    const isBlocked = wrong !== undefined && wrong.totalHits >= ADMIN_QUOTA.limit;
    if (!isBlocked && equalTexts(presented, adminToken)) return next();
    await wrongAdminTokens(req, res, (error) => next(error ?? refusal('invalid_token', ', error="invalid_token"')));
  };
}

function refusal(code: string, error = ''): RequestError {
  const message = 'Send the admin token of the token server: Authorization: Bearer <TILLGATE_ADMIN_TOKEN>.';
  return new RequestError(401, code, message, { 'WWW-Authenticate': `Bearer realm="admin"${error}` });
}

const FOREIGN: Readonly<Record<ForeignCaller, string>> = {
  address: 'Without an admin token only this machine may call these URLs: set TILLGATE_ADMIN_TOKEN.',
  proxy:
    'Requests through a proxy (or by HTTP/1.0, as proxies send them) need an admin token: set TILLGATE_ADMIN_TOKEN.',
  host: 'The Host header must name this machine, such as 127.0.0.1 or localhost.',
  page: 'Pages of another origin may not use this API: call it from a program, or set TILLGATE_ADMIN_TOKEN.',
};

const requireThisMachine: RequestHandler = function requireThisMachine(req, _res, next) {
  const foreign = foreignCaller(req);
  if (foreign) throw new RequestError(403, 'forbidden', FOREIGN[foreign]);
  next();
};
