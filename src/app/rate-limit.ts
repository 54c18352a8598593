import { MemoryStore, rateLimit } from 'express-rate-limit';
import type { Request, RequestHandler } from 'express';
import { sendProblem } from '../index';
import type { Logger, Settings } from '../index';
import { connectToRedis } from './redis-commands';
import { SharedRateStore } from './shared-rate-store';

/** Options of {@link clientRateLimit}. */
export interface ClientRateLimitOptions {
  /** `rateLimit` is the quota; where `generations` is in Redis, requests are counted there too. */
  readonly settings: Pick<Settings, 'rateLimit' | 'generations' | 'audience'>;
  readonly logger: Logger;
  /** Told about every request that is refused. */
  readonly onLimited: (req: Request) => void;
}

/** A limiter and what it holds open. */
export interface ClientRateLimit {
  readonly handler: RequestHandler;
  close(): void;
}

/**
 * Limits the requests per client id, with `RateLimit` and `RateLimit-Policy` headers on every answer
 * (draft-ietf-httpapi-ratelimit-headers-08). Belongs behind `authenticate()`: the id in an unverified token means
 * nothing, and verified ones are as many as there are clients, so the counts stay few.
 */
export function clientRateLimit({ settings, logger, onLimited }: ClientRateLimitOptions): ClientRateLimit {
  if (settings.rateLimit === undefined) return { handler: (_req, _res, next) => next(), close() {} };
  const { limit, windowMs } = settings.rateLimit;
  const store = storeOf(settings, logger);
  const handler = rateLimit({
    limit,
    windowMs,
    store,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    identifier: 'client',
    keyGenerator: (req) => req.auth?.clientId ?? '',
    handler(req, res) {
      onLimited(req);
      sendProblem(req, res, {
        status: 429,
        code: 'rate_limited',
        detail: `This client may send ${limit} requests in ${windowMs / 1000} s; Retry-After says when to go on.`,
      });
    },
  });
  return { handler, close: () => store.shutdown() };
}

/** What has the same audience is the same API: its processes share one quota. */
function storeOf({ generations, audience }: ClientRateLimitOptions['settings'], logger: Logger) {
  if (generations === undefined || !/^rediss?:/i.test(generations)) return new MemoryStore();
  return new SharedRateStore({
    redis: connectToRedis(generations),
    prefix: `tillgate:rate-limit:${audience} `,
    logger,
  });
}
