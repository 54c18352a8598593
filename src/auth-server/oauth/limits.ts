import { ipKeyGenerator, rateLimit } from 'express-rate-limit';
import type { Options } from 'express-rate-limit';
import type { Request, RequestHandler, Response } from 'express';
import { MemoryRateStore } from '../../rate-limit/memory-store';
import { RequestError } from '../errors';
import type { AuthServerSettings } from '../options';
import type { OAuthResponse } from './request';

/** Ids are unverified: past this number of live windows, further ids of an address share one window. */
const MAX_WINDOWS = 20_000;

/**
 * Makes the limits per claimed client id and address: of token requests, and of introspection requests with a wrong
 * secret. Both set `RateLimit` and `RateLimit-Policy` headers (draft-ietf-httpapi-ratelimit-headers-08).
 */
export function oauthLimits(
  { rateLimit: quota, clock }: Pick<AuthServerSettings, 'rateLimit' | 'clock'>,
  maxKeys = MAX_WINDOWS,
): Record<'tokens' | 'wrongSecrets', RequestHandler> {
  if (!quota) return { tokens: pass, wrongSecrets: pass };
  const { limit, windowMs } = quota;

  function limiter(identifier: string, counted: string, more: Partial<Options> = {}): RequestHandler {
    const message = `No more than ${limit} ${counted} per ${windowMs / 1000} s.`;
    return rateLimit({
      limit,
      windowMs,
      store: new MemoryRateStore({ windowMs, clock, maxKeys, sharedKey: addressOf }),
      standardHeaders: 'draft-8',
      legacyHeaders: false,
      identifier,
      keyGenerator: (req, res) => keyOf(req, res as OAuthResponse),
      // RFC 6749 section 5.2 has no code for 429.
      handler: (_req, _res, next) => next(new RequestError(429, 'temporarily_unavailable', message)),
      ...more,
    });
  }

  return {
    tokens: limiter('token', 'token requests'),
    wrongSecrets: limiter('introspection', 'wrong secrets', {
      skipSuccessfulRequests: true,
      requestWasSuccessful: (_req: Request, { statusCode }: Response) => statusCode !== 401,
    }),
  };
}

const pass: RequestHandler = (_req, _res, next) => next();

/** An address contains no blank, so no id can pose as another address. */
function keyOf({ ip }: Request, { locals }: OAuthResponse): string {
  // One IPv6 caller has a whole /64 or more: its network counts as one address.
  return `${ipKeyGenerator(String(ip))} ${locals.credentials?.clientId.slice(0, 128) ?? ''}`;
}

function addressOf(key: string): string {
  return key.slice(0, key.indexOf(' '));
}
