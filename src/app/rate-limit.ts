import { MemoryStore, rateLimit } from 'express-rate-limit';
import type { Request, RequestHandler } from 'express';
import { sendProblem } from '../index';
import type { Settings } from '../index';

/** A limiter and what it holds open. */
export interface ClientRateLimit {
  readonly handler: RequestHandler;
  close(): void;
}

/**
 * Limits the requests per client id, with `RateLimit` and `RateLimit-Policy` headers on every answer
 * (draft-ietf-httpapi-ratelimit-headers-08). Belongs behind `authenticate()`: the id in an unverified token means nothing.
 *
 * @param quota - `undefined` limits nothing
 * @param onLimited - told about every request that is refused
 */
export function clientRateLimit(quota: Settings['rateLimit'], onLimited: (req: Request) => void): ClientRateLimit {
  if (quota === undefined) return { handler: (_req, _res, next) => next(), close() {} };
  const { limit, windowMs } = quota;
  const store = new MemoryStore();
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
