import { MemoryStore, rateLimit } from 'express-rate-limit';
import type { Request, RequestHandler } from 'express';
import { sendProblem } from '../index';
import type { Logger, Settings } from '../index';
import { SharedRateStore } from './shared-rate-store';
import type { RedisCommands } from './shared-rate-store';

/** Options of {@link clientRateLimit}. */
export interface ClientRateLimitOptions {
  /** `rateLimit` is the quota. */
  readonly settings: Pick<Settings, 'rateLimit' | 'audience'>;
  /** Connects to where requests are counted for several processes together; called once, if there is a quota. */
  readonly connectToRedis: (() => RedisCommands) | undefined;
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
export function clientRateLimit(options: ClientRateLimitOptions): ClientRateLimit {
  const { settings, onLimited } = options;
  if (settings.rateLimit === undefined) return { handler: (_req, _res, next) => next(), close() {} };
  const { limit, windowMs } = settings.rateLimit;
  const store = storeOf(options);
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
function storeOf({ settings, connectToRedis, logger }: ClientRateLimitOptions): MemoryStore | SharedRateStore {
  if (!connectToRedis) return new MemoryStore();
  return new SharedRateStore({ redis: connectToRedis(), prefix: `tillgate:rate-limit:${settings.audience} `, logger });
}
