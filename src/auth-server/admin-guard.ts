import type { RequestHandler } from 'express';
import { foreignCaller } from '../core/this-machine';
import type { ForeignCaller } from '../core/this-machine';
import { equalTexts } from './clients/secrets';
import { RequestError } from './errors';

/**
 * Makes the guard of the endpoints for operators. With an admin token, the caller must send it; without one, requests
 * must come from this machine, directly, and not from a page of another origin.
 */
export function adminGuard(adminToken: string | undefined): RequestHandler {
  return adminToken === undefined ? requireThisMachine : requireToken(adminToken);
}

function requireToken(adminToken: string): RequestHandler {
  return function requireAdminToken(req, _res, next) {
    const presented = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? '')?.[1];
    if (presented !== undefined && equalTexts(presented, adminToken)) return next();
    const message = 'Send the admin token of the token server: Authorization: Bearer <TILLGATE_ADMIN_TOKEN>.';
    // RFC 6750 section 3.1: no error code when the request has no credentials.
    const [code, error] =
      presented === undefined ? ['missing_token', ''] : ['invalid_token', ', error="invalid_token"'];
    throw new RequestError(401, code, message, { 'WWW-Authenticate': `Bearer realm="admin"${error}` });
  };
}

const FOREIGN: Readonly<Record<ForeignCaller, string>> = {
  address: 'Without an admin token only this machine may call these URLs: set TILLGATE_ADMIN_TOKEN.',
  proxy: 'Requests that came through a proxy need an admin token: set TILLGATE_ADMIN_TOKEN.',
  host: 'The Host header must name this machine, such as 127.0.0.1 or localhost.',
  page: 'Pages of another origin may not use this API: call it from a program, or set TILLGATE_ADMIN_TOKEN.',
};

const requireThisMachine: RequestHandler = function requireThisMachine(req, _res, next) {
  const foreign = foreignCaller(req);
  if (foreign) throw new RequestError(403, 'forbidden', FOREIGN[foreign]);
  next();
};
