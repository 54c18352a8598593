import { timingSafeEqual } from 'node:crypto';
import { MemoryStore, ipKeyGenerator, rateLimit, type ClientRateLimitInfo } from 'express-rate-limit';
import type { Request, RequestHandler, Response } from 'express';
import type { RateLimit } from 'tillgate/env';
import { foreignCaller } from 'tillgate/internal';
import { digest } from './client';
import { RequestError } from './errors';

/** Counts what arrives in one packet one by one: the store's own object also counts the requests that follow. */
class CountingStore extends MemoryStore {
  override increment(key: string): Promise<ClientRateLimitInfo> {
    const counting = super.increment(key);
    const counted = this.current.get(key);
    return counted ? Promise.resolve({ ...counted }) : counting;
  }
}

/**
 * Makes the limit of token requests, per claimed client id and address. It sets `RateLimit` and `RateLimit-Policy` headers
 * (draft-ietf-httpapi-ratelimit-headers-08).
 */
export function tokenLimit(quota: RateLimit | false): { readonly handler: RequestHandler; close(): void } {
  if (!quota) return { handler: (_req, _res, next) => next(), close: () => undefined };
  const { limit, windowMs } = quota;
  const message = `No more than ${limit} token requests per ${windowMs / 1000} s.`;
  const store = new CountingStore();
  const handler = rateLimit({
    limit,
    windowMs,
    store,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    identifier: 'token',
    keyGenerator: clientOf,
    // RFC 6749 section 5.2 has no code for 429.
    handler: (_req, _res, next) => next(new RequestError(429, 'temporarily_unavailable', message)),
  });
  return { handler, close: () => store.shutdown() };
}

/** One IPv6 caller has a whole /64 or more: its network counts as one address, which contains no blank. */
function clientOf({ ip }: Request, { locals }: Response): string {
  const { credentials } = locals as { credentials?: { readonly clientId: string } };
  return `${ipKeyGenerator(String(ip))} ${credentials?.clientId.slice(0, 128) ?? ''}`;
}

/**
 * Makes the guard of the endpoints for operators. With an admin token, the caller must send it; without one, requests must
 * come from this machine, directly, and not from a page of another origin.
 */
export function adminGuard(adminToken: string | undefined): RequestHandler {
  if (adminToken === undefined) return requireThisMachine;
  const expected = digest(adminToken);
  return function requireAdminToken(req, _res, next) {
    const presented = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? '')?.[1];
    // RFC 6750 section 3.1: no error code when the request has no credentials.
    if (presented === undefined) throw refusal('missing_token');
    if (!timingSafeEqual(digest(presented), expected)) throw refusal('invalid_token', ', error="invalid_token"');
    next();
  };
}

function refusal(code: string, error = ''): RequestError {
  const message = 'Send the admin token of the token server: Authorization: Bearer <TILLGATE_ADMIN_TOKEN>.';
  return new RequestError(401, code, message, { 'WWW-Authenticate': `Bearer realm="admin"${error}` });
}

const FOREIGN: Readonly<Record<NonNullable<ReturnType<typeof foreignCaller>>, string>> = {
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
