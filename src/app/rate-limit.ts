import { rateLimit } from 'express-rate-limit';
import type { Request, RequestHandler } from 'express';
import { sendProblem } from '../index';
import type { Logger } from '../index';
import type { Settings } from '../settings/settings';
import { LocalRateStore, SharedRateStore } from '../rate-limit/stores';
import type { RedisCommands } from '../rate-limit/stores';

/**
 * Limits the requests per client (issuer and client id), with `RateLimit` and `RateLimit-Policy` headers on every response
 * (draft-ietf-httpapi-ratelimit-headers-08). Mount it after `authenticate()`: the id in an unverified token
 * means nothing.
 */
export function clientRateLimit({
  settings,
  connectToRedis,
  logger,
  onLimited,
}: {
  readonly settings: Pick<Settings, 'rateLimit' | 'audience'>;
  /** Connects to the Redis that counts for several processes together; called once, if there is a quota. */
  readonly connectToRedis: (() => RedisCommands) | undefined;
  readonly logger: Logger;
  /** Called for every request that is refused. */
  readonly onLimited: (req: Request) => void;
}): { readonly handler: RequestHandler; readonly close: () => void } {
  if (settings.rateLimit === undefined) return { handler: (_req, _res, next) => next(), close: () => undefined };
  const { limit, windowMs } = settings.rateLimit;
  // APIs with the same audience are the same API: its processes share one quota.
  const prefix = `tillgate:rate-limit:${settings.audience} `;
  // Without a bound: there are only as many verified ids as clients.
  const store = connectToRedis ? new SharedRateStore(connectToRedis(), prefix, logger) : new LocalRateStore();
  const handler = rateLimit({
    limit,
    windowMs,
    store,
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
  return { handler, close: () => store.shutdown() };
}
