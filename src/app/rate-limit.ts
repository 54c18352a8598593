import { rateLimit } from 'express-rate-limit';
import type { Request, RequestHandler } from 'express';
import { sendProblem } from '../index';
import type { Logger } from '../index';
import type { Settings } from '../settings/settings';
import { MemoryRateStore } from '../rate-limit/memory-store';
import { SharedRateStore } from '../rate-limit/shared-store';
import type { RedisCommands } from '../rate-limit/shared-store';

/** Options of {@link clientRateLimit}. */
export interface ClientRateLimitOptions {
  /** `rateLimit` is the quota. */
  readonly settings: Pick<Settings, 'rateLimit' | 'audience'>;
  /** Connects to the Redis that counts for several processes together; called once, if there is a quota. */
  readonly connectToRedis: (() => RedisCommands) | undefined;
  readonly logger: Logger;
  /** Called for every request that is refused. */
  readonly onLimited: (req: Request) => void;
}

/** A limiter and what it holds open. */
export interface ClientRateLimit {
  readonly handler: RequestHandler;
  close(): void;
}

/**
 * Limits the requests per client (issuer and client id), with `RateLimit` and `RateLimit-Policy` headers on every response
 * (draft-ietf-httpapi-ratelimit-headers-08). Mount it after `authenticate()`: the id in an unverified token
 * means nothing, and there are only as many verified ids as clients.
 */
export function clientRateLimit(options: ClientRateLimitOptions): ClientRateLimit {
  const { settings, connectToRedis, logger, onLimited } = options;
  if (settings.rateLimit === undefined) return { handler: (_req, _res, next) => next(), close() {} };
  const { limit, windowMs } = settings.rateLimit;
  // APIs with the same audience are the same API: its processes share one quota.
  const prefix = `tillgate:rate-limit:${settings.audience} `;
  const shared = connectToRedis && new SharedRateStore({ redis: connectToRedis(), prefix, windowMs, logger });
  const handler = rateLimit({
    limit,
    windowMs,
    store: shared ?? new MemoryRateStore({ windowMs }),
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    identifier: 'client',
    // Two issuers may have a client of the same id.
    keyGenerator: ({ auth }) => (auth ? JSON.stringify([auth.issuer, auth.clientId]) : ''),
    handler(req, res) {
      onLimited(req);
      sendProblem(req, res, {
        status: 429,
        code: 'rate_limited',
        detail: `This client may send ${limit} requests in ${windowMs / 1000} s; Retry-After says when to go on.`,
      });
    },
  });
  return { handler, close: () => shared?.shutdown() };
}
