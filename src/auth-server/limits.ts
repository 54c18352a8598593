import { ipKeyGenerator, rateLimit } from 'express-rate-limit';
import type { Options, RateLimitRequestHandler } from 'express-rate-limit';
import type { Request, RequestHandler, Response } from 'express';
import { LocalRateStore } from '../rate-limit/stores';
import type { RateLimit } from '../settings/variables';
import { RequestError } from './errors';

/** The limits of one token server. */
export interface RateLimits {
  readonly tokens: RequestHandler;
  readonly wrongSecrets: RequestHandler;
  readonly wrongAdminTokens: RateLimitRequestHandler;
  close(): void;
}

/** Wrong admin tokens of one address. */
export const ADMIN_QUOTA: RateLimit = { limit: 10, windowMs: 60_000 };

/** Ids and addresses are unverified: past this number, further ones share a count. */
const MAX_KEYS = 20_000;

/**
 * Makes the limits of one token server: per claimed client id and address for token requests and for introspection
 * requests with a wrong secret, per address for wrong admin tokens. Each sets `RateLimit` and `RateLimit-Policy` headers
 * (draft-ietf-httpapi-ratelimit-headers-08).
 */
export function rateLimits(clientQuota: RateLimit | false, maxKeys = MAX_KEYS): RateLimits {
  const stores: LocalRateStore[] = [];

  function limiter({ limit, windowMs }: RateLimit, code: string, counted: string, options: Partial<Options>) {
    const message = `No more than ${limit} ${counted} per ${windowMs / 1000} s.`;
    const store = new LocalRateStore(maxKeys);
    stores.push(store);
    return rateLimit({
      limit,
      windowMs,
      store,
      standardHeaders: 'draft-8',
      legacyHeaders: false,
      handler: (_req, _res, next) => next(new RequestError(429, code, message)),
      ...options,
    });
  }

  function clientLimiter(counted: string, options: Partial<Options>): RequestHandler {
    if (!clientQuota) return (_req, _res, next) => next();
    // RFC 6749 section 5.2 has no code for 429.
    return limiter(clientQuota, 'temporarily_unavailable', counted, { keyGenerator: clientOf, ...options });
  }

  return {
    tokens: clientLimiter('token requests', { identifier: 'token' }),
    wrongSecrets: clientLimiter('wrong secrets', {
      identifier: 'introspection',
      skipSuccessfulRequests: true,
      requestWasSuccessful: (_req: Request, { statusCode }: Response) => statusCode !== 401,
    }),
    wrongAdminTokens: limiter(ADMIN_QUOTA, 'rate_limited', 'wrong admin tokens', {
      identifier: 'admin',
      keyGenerator: addressOf,
    }),
    close() {
      for (const store of stores) store.shutdown();
    },
  };
}

/** One IPv6 caller has a whole /64 or more: its network counts as one address. */
export function addressOf({ ip }: Request): string {
  return ipKeyGenerator(String(ip));
}

/** An address contains no blank, so no id can pose as another address. */
function clientOf(req: Request, { locals }: Response): string {
  const { credentials } = locals as { credentials?: { readonly clientId: string } };
  return `${addressOf(req)} ${credentials?.clientId.slice(0, 128) ?? ''}`;
}
