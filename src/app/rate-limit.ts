import { createHash } from 'node:crypto';
import type { RequestHandler } from 'express';
import { MemoryStore, rateLimit } from 'express-rate-limit';
import { RedisStore } from 'rate-limit-redis';
import { createClient } from 'redis';
import { sendProblem } from 'tillgate';
import { noteRefusal } from './log';
import type { AppSettings } from './settings';

/** How long a request waits for Redis at most. */
const TIMEOUT_MS = 500;

/**
 * Limits the requests per client (issuer and client id), with `RateLimit` and `RateLimit-Policy` headers on every response
 * (draft-ietf-httpapi-ratelimit-headers-08). Mount it after `authenticate()`: the id in an unverified token means nothing.
 * Processes with one Redis in `TILLGATE_GENERATIONS` share their counts there; while it does not respond, nothing is limited.
 */
export function clientRateLimit(settings: AppSettings): {
  readonly handler: RequestHandler;
  readonly close: () => void;
} {
  if (settings.rateLimit === undefined) return { handler: (_req, _res, next) => next(), close: () => undefined };
  const { limit, windowMs } = settings.rateLimit;
  const shared = /^rediss?:/i.test(settings.generationSource ?? '') ? redisStore(settings) : undefined;
  const local = new MemoryStore();
  const handler = rateLimit({
    limit,
    windowMs,
    store: shared?.store ?? local,
    passOnStoreError: true,
    // A store that fails is logged below, once per outage.
    logger: { error() {}, warn() {} },
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    identifier: 'client',
    // Two issuers may have a client of the same id.
    keyGenerator: ({ auth }) => (auth ? JSON.stringify([auth.issuer, auth.clientId]) : ''),
    handler(req, res) {
      noteRefusal(req, 'rate_limited');
      sendProblem(req, res, {
        status: 429,
        code: 'rate_limited',
        detail: `This client may send ${limit} requests in ${windowMs / 1000} s; Retry-After says when to go on.`,
      });
    },
  });
  return { handler, close: shared?.close ?? (() => local.shutdown()) };
}

/** Counts by rate-limit-redis; the prefix is the audience: APIs with the same one are the same API. */
function redisStore({ audience, generationSource: url = '', log }: AppSettings) {
  const client = createClient({ url: url.replace(/\?.*$/, ''), name: 'tillgate-limits', disableOfflineQueue: true });
  let isDown = false;

  async function send(...args: string[]): Promise<string | number | (string | number)[]> {
    try {
      const response = await within(TIMEOUT_MS, client.sendCommand<string | number>(args));
      if (isDown) log.info('rate limit: Redis counts again');
      isDown = false;
      return response;
    } catch (error) {
      // Without its message, which may quote the URL.
      const { name, code } = error as NodeJS.ErrnoException;
      if (!isDown) log.warn({ error: code ?? name }, 'rate limit: Redis does not count, requests are not limited');
      isDown = true;
      // rate-limit-redis keeps the result of SCRIPT LOAD, a failure too. By its digest, Redis asks for the script later.
      if (args[0] === 'SCRIPT') return createHash('sha1').update(String(args[2])).digest('hex');
      throw error;
    }
  }
  // It connects again by itself; what fails in the meantime is logged above.
  client.on('error', () => undefined);
  const connected = client.connect().catch(() => undefined);
  const store = new RedisStore({
    prefix: `tillgate:rate-limit:${String(audience)} `,
    sendCommand: async (...args) => {
      await within(TIMEOUT_MS, connected).catch(() => undefined);
      return send(...args);
    },
  });
  return { store, close: () => client.destroy() };
}

/** What `work` resolves with; rejects after a time, and does not cancel `work`. */
function within<Value>(ms: number, work: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(Object.assign(new Error('timeout'), { code: 'TIMEOUT' })), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
