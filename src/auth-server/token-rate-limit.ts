import { ipKeyGenerator, rateLimit } from 'express-rate-limit';
import type { OAuthHandler } from './oauth-endpoint';
import { OAuthError } from './oauth-error';
import { RateStore } from './rate-store';

/** A number of requests per window of time. */
export interface RateLimit {
  /** Requests per window, at least 1. */
  readonly limit: number;
  /** Length of the window, in ms. */
  readonly windowMs: number;
}

/**
 * Limits token requests per claimed client id and address, good or not, with `RateLimit` and `RateLimit-Policy` headers
 * on every answer (draft-ietf-httpapi-ratelimit-headers-08).
 */
export function tokenRateLimit({ limit, windowMs }: RateLimit): OAuthHandler {
  const limiter = rateLimit({
    limit,
    windowMs,
    store: new RateStore({ windowMs }),
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    identifier: 'token',
    keyGenerator(req, res) {
      const { credentials } = (res.locals as Parameters<OAuthHandler>[1]['locals']).oauth;
      // An address has no blank: no id can pose as another address.
      return `${ipKeyGenerator(req.ip ?? '')} ${credentials?.clientId.slice(0, 128) ?? ''}`;
    },
    handler(_req, _res, next) {
      const seconds = windowMs / 1000;
      next(new OAuthError('temporarily_unavailable', `No more than ${limit} token requests per ${seconds} s.`, 429));
    },
  });
  return limiter as unknown as OAuthHandler;
}
