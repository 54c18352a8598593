import { hash, timingSafeEqual } from 'node:crypto';
import { MemoryStore, ipKeyGenerator, rateLimit } from 'express-rate-limit';
import type { ClientRateLimitInfo, Options } from 'express-rate-limit';
import type { Request, RequestHandler, Response } from 'express';
import type { RateLimit } from 'tillgate/env';
import { foreignCaller } from 'tillgate/internal';
import { RequestError } from './errors';

/** The limits of one token server. */
export interface RateLimits {
  readonly tokens: RequestHandler;
  /** Counts a request by its address. */
  readonly wrongAdminTokens: RequestHandler;
  /** Takes back what `wrongAdminTokens` has counted: the token was the right one. */
  readonly forgiveAdminToken: (req: Request) => void;
  close(): void;
}

/** Wrong admin tokens of one address. */
const ADMIN_QUOTA: RateLimit = { limit: 10, windowMs: 60_000 };

/** Counts what arrives in one packet one by one: the store's own object also counts the requests that follow. */
class CountingStore extends MemoryStore {
  override increment(key: string): Promise<ClientRateLimitInfo> {
    const counting = super.increment(key);
    const counted = this.current.get(key);
    return counted ? Promise.resolve({ ...counted }) : counting;
  }
}

/**
 * Makes the limits of one token server: per claimed client id and address for token requests, per
 * address for wrong admin tokens. Each sets `RateLimit` and `RateLimit-Policy` headers
 * (draft-ietf-httpapi-ratelimit-headers-08).
 */
export function rateLimits(clientQuota: RateLimit | false): RateLimits {
  const stores: MemoryStore[] = [];
  const newStore = (): MemoryStore => {
    const store = new CountingStore();
    stores.push(store);
    return store;
  };
  const adminTokens = newStore();

  function limiter({ limit, windowMs }: RateLimit, code: string, counted: string, options: Partial<Options>) {
    const message = `No more than ${limit} ${counted} per ${windowMs / 1000} s.`;
    return rateLimit({
      limit,
      windowMs,
      store: newStore(),
      standardHeaders: 'draft-8',
      legacyHeaders: false,
      handler: (_req, _res, next) => next(new RequestError(429, code, message)),
      ...options,
    });
  }

  return {
    tokens: clientQuota
      ? // RFC 6749 section 5.2 has no code for 429.
        limiter(clientQuota, 'temporarily_unavailable', 'token requests', {
          keyGenerator: clientOf,
          identifier: 'token',
        })
      : (_req, _res, next) => next(),
    wrongAdminTokens: limiter(ADMIN_QUOTA, 'rate_limited', 'wrong admin tokens', {
      identifier: 'admin',
      store: adminTokens,
      keyGenerator: addressOf,
    }),
    forgiveAdminToken: (req) => void adminTokens.decrement(addressOf(req)),
    close() {
      for (const store of stores) store.shutdown();
    },
  };
}

/** One IPv6 caller has a whole /64 or more: its network counts as one address. */
function addressOf({ ip }: Request): string {
  return ipKeyGenerator(String(ip));
}

/** An address contains no blank, so no id can pose as another address. */
function clientOf(req: Request, { locals }: Response): string {
  const { credentials } = locals as { credentials?: { readonly clientId: string } };
  return `${addressOf(req)} ${credentials?.clientId.slice(0, 128) ?? ''}`;
}

/**
 * Makes the guard of the endpoints for operators. With an admin token, the caller must send it, and an address may send
 * 10 wrong ones per minute; without one, requests must come from this machine, directly, and not from a page of another
 * origin.
 */
export function adminGuard(
  adminToken: string | undefined,
  { wrongAdminTokens, forgiveAdminToken }: RateLimits,
): RequestHandler {
  if (adminToken === undefined) return requireThisMachine;

  return async function requireAdminToken(req, res, next) {
    const presented = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? '')?.[1];
    // RFC 6750 section 3.1: no error code when the request has no credentials.
    if (presented === undefined) throw refusal('missing_token');
    // Counted before it is compared: of many tokens in one packet, too, only as many are compared as the limit allows.
    await wrongAdminTokens(req, res, (error) => {
      if (error) return next(error);
      if (!equalTexts(presented, adminToken)) return next(refusal('invalid_token', ', error="invalid_token"'));
      forgiveAdminToken(req);
      next();
    });
  };
}

/** Whether two texts are equal, in constant time for any lengths. */
function equalTexts(a: string, b: string): boolean {
  return timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'));
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
