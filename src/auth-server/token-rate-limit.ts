import { hash } from 'node:crypto';
import { ipKeyGenerator } from 'express-rate-limit';
import type { Clock } from '../core/clock';
import type { OAuthRequest, RequestLimit } from './oauth-endpoint';
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
 *
 * The headers are written here: express-rate-limit needs Express's response, and a fifth of the time of a token.
 */
export function tokenRateLimit({ limit, windowMs }: RateLimit, clock: Clock): RequestLimit {
  const windows = new RateStore({ windowMs, clock });
  const quota = `"token"; q=${limit}; w=${Math.ceil(windowMs / 1000)}`;

  return function countRequest(request, res) {
    const key = keyOf(request);
    const { totalHits, resetTime } = windows.increment(key);
    const resetSeconds = Math.ceil(((resetTime?.getTime() ?? 0) - clock()) / 1000);
    res.setHeader('RateLimit', `"token"; r=${Math.max(limit - totalHits, 0)}; t=${resetSeconds}`);
    res.setHeader('RateLimit-Policy', `${quota}; pk=:${partitionKey(key)}:`);
    if (totalHits <= limit) return;
    throw new OAuthError(
      'temporarily_unavailable',
      `No more than ${limit} token requests per ${windowMs / 1000} s.`,
      429,
      { 'Retry-After': String(resetSeconds) },
    );
  };
}

/** An address has no blank: no id can pose as another address. Of IPv6 the network counts, which one caller has whole. */
function keyOf({ address, credentials }: OAuthRequest): string {
  const origin = address.includes(':') ? ipKeyGenerator(address) : address;
  return `${origin} ${credentials?.clientId.slice(0, 128) ?? ''}`;
}

/** Names the partition without saying whose it is (section 2.2 of the draft). */
function partitionKey(key: string): string {
  return Buffer.from(hash('sha256', key).slice(0, 12)).toString('base64');
}
