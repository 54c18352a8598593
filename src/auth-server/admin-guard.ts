import { ipKeyGenerator, rateLimit } from 'express-rate-limit';
import type { Request, RequestHandler } from 'express';
import { foreignCaller } from '../core/this-machine';
import type { ForeignCaller } from '../core/this-machine';
import { MemoryRateStore } from '../rate-limit/memory-store';
import { equalTexts } from './clients/secrets';
import { RequestError } from './errors';
import type { AuthServerSettings } from './options';

const WRONG_TOKENS = 10;
const WINDOW_MS = 60_000;
const MAX_ADDRESSES = 20_000;

/**
 * Makes the guard of the endpoints for operators. With an admin token, the caller must send it, and an address may send
 * 10 wrong ones per minute; without one, requests must come from this machine, directly, and not from a page of another
 * origin.
 */
export function adminGuard({ adminToken, clock }: Pick<AuthServerSettings, 'adminToken' | 'clock'>): RequestHandler {
  if (adminToken === undefined) return requireThisMachine;
  const countWrong = rateLimit({
    limit: WRONG_TOKENS,
    windowMs: WINDOW_MS,
    store: new MemoryRateStore({ windowMs: WINDOW_MS, clock, maxKeys: MAX_ADDRESSES }),
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    identifier: 'admin',
    keyGenerator: addressOf,
    handler: (_req, _res, next) => next(new RequestError(429, 'rate_limited', TOO_MANY)),
  });

  return async function requireAdminToken(req, res, next) {
    const presented = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? '')?.[1];
    // RFC 6750 section 3.1: no error code when the request has no credentials.
    if (presented === undefined) throw refusal('missing_token');
    const wrong = await countWrong.getKey(addressOf(req));
    // Past the limit the right one is refused too: else guessing could go on.
    const isBlocked = wrong !== undefined && wrong.totalHits >= WRONG_TOKENS;
    if (!isBlocked && equalTexts(presented, adminToken)) return next();
    await countWrong(req, res, (error) => next(error ?? refusal('invalid_token', ', error="invalid_token"')));
  };
}

const TOO_MANY = `No more than ${WRONG_TOKENS} wrong admin tokens per ${WINDOW_MS / 1000} s.`;

/** One IPv6 caller has a whole /64 or more: its network counts as one address. */
function addressOf({ ip }: Request): string {
  return ipKeyGenerator(String(ip));
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
