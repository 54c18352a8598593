import { ipKeyGenerator, rateLimit } from 'express-rate-limit';
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import type { Clock } from '../../core/clock';
import { MemoryRateStore } from '../../rate-limit/memory-store';
import { OAuthError } from './error';
import type { OAuthLocals } from './request';

/** A number of requests per window of time. */
export interface RateLimit {
  /** Requests per window, at least 1. */
  readonly limit: number;
  /** Length of the window, in ms. */
  readonly windowMs: number;
}

/** The limits of the OAuth endpoints. */
export interface OAuthLimits {
  /** Counts token requests. */
  readonly tokens: RequestHandler;
  /** Refuses introspection after too many wrong secrets. */
  readonly guesses: RequestHandler;
  /** Counts a wrong secret. */
  readonly countGuess: ErrorRequestHandler;
}

/** Ids are unverified: past this number of live windows, further ids of an address share one window. */
const MAX_WINDOWS = 20_000;

/**
 * Makes the limits per claimed client id and address: of all token requests, with `RateLimit` and `RateLimit-Policy`
 * headers (draft-ietf-httpapi-ratelimit-headers-08), and of wrong secrets at the introspection endpoint.
 */
export function oauthLimits(rateLimits: RateLimit | false, clock: Clock): OAuthLimits {
  if (!rateLimits) return { tokens: pass, guesses: pass, countGuess: (error, _req, _res, next) => next(error) };
  const { limit, windowMs } = rateLimits;
  const store = () => new MemoryRateStore({ windowMs, clock, maxKeys: MAX_WINDOWS, sharedKey: addressOf });
  const failures = store();
  const per = `per ${windowMs / 1000} s`;

  return {
    tokens: rateLimit({
      limit,
      windowMs,
      store: store(),
      standardHeaders: 'draft-8',
      legacyHeaders: false,
      identifier: 'token',
      keyGenerator: (req, res) => keyOf(req, res as Response<unknown, OAuthLocals>),
      handler: (_req, _res, next) =>
        next(new OAuthError('temporarily_unavailable', `No more than ${limit} token requests ${per}.`, 429)),
    }),
    guesses(req, res, next) {
      const known = failures.get(keyOf(req, res as Response<unknown, OAuthLocals>));
      if (!known || known.totalHits < limit) return next();
      const retryAfter = Math.ceil((known.resetTime.getTime() - Date.now()) / 1000);
      throw new OAuthError('temporarily_unavailable', `No more than ${limit} wrong secrets ${per}.`, 429, {
        'Retry-After': String(retryAfter),
      });
    },
    countGuess(error, req, res, next) {
      if (error instanceof OAuthError && error.error === 'invalid_client') {
        failures.increment(keyOf(req, res as Response<unknown, OAuthLocals>));
      }
      next(error);
    },
  };
}

const pass: RequestHandler = (_req, _res, next) => next();

/** An address contains no blank, so no id can pose as another address. */
function keyOf({ ip = '' }: Request, { locals }: Response<unknown, OAuthLocals>): string {
  return `${networkOf(ip)} ${locals.credentials?.clientId.slice(0, 128) ?? ''}`;
}

/** One IPv6 caller has a whole /64 or more: its network counts as one address. */
function networkOf(ip: string): string {
  return ip.includes(':') ? ipKeyGenerator(ip) : ip;
}

function addressOf(key: string): string {
  return key.slice(0, key.indexOf(' '));
}
