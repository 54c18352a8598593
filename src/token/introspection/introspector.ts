import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { AuthError } from '../../core/auth-error';
import { backOffMs } from '../../core/clock';
import type { Clock, Schedule } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { NO_OPTIONS } from '../../core/objects';
import { FetchError } from '../keys/fetch-json';
import { MAX_TOKEN_LENGTH } from '../jws';
import { freezeDeep } from '../strict-json';
import type { AskAbout, Claims } from './endpoint';

/** Knows which opaque tokens are active, by asking their issuer. */
export interface Introspector {
  /** The claims of a token that was active at most `cacheMs` ago, the same object each time; `undefined`: ask. */
  readonly get: (token: string) => Claims | undefined;
  /** Asks about a token. Rejects with an AuthError `malformed_token`, `inactive` or `introspection_unavailable`. */
  readonly introspect: (token: string) => Promise<Claims>;
  /** Ends the calls under way; later ones reject. */
  readonly close: () => void;
}

/** Dependencies and limits. */
export interface IntrospectorOptions {
  readonly issuer: string;
  readonly askAbout: AskAbout;
  readonly cacheMs: number;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
}

/** For one token: its turn and the call. */
const TIMEOUT_MS = 5_000;
/** How long a token counts as inactive: it may have been issued a moment ago by another server of the issuer. */
const INACTIVE_MS = 5_000;
const MAX_ACTIVE = 5_000;
const MAX_INACTIVE = 10_000;
const BACK_OFF = { firstMs: 250, longestMs: 5_000 };
/** Pause between two warnings about responses that only some tokens get. */
const WARNING_EVERY_MS = 60_000;

interface Entry {
  readonly claims: Claims;
  readonly askedMs: number;
}

/**
 * Makes an introspector. Tokens are remembered by their SHA-256. However many tokens callers make up, the issuer gets a
 * bounded number of calls at a time, one per token; tokens that were active before take precedence.
 */
export function introspector(options: IntrospectorOptions): Introspector {
  const { issuer, askAbout, cacheMs, logger, clock, schedule, random } = options;
  const active = new LRUCache<string, Entry>({ max: MAX_ACTIVE });
  const inactive = new LRUCache<string, number>({ max: MAX_INACTIVE });
  const inFlight = new Map<string, Promise<Claims>>();
  const calls = callQueue();
  const exchanges = new Set<AbortController>();
  let closed = false;
  let failures = 0;
  let retryAtMs = -Infinity;
  let warnedMs = -Infinity;

  /** A negative age, after the clock has stepped back, is too old. */
  function isRecent(sinceMs: number | undefined, limitMs: number): boolean {
    const ageMs = clock() - (sinceMs ?? -Infinity);
    return ageMs >= 0 && ageMs < limitMs;
  }

  function cached(id: string): Claims | undefined {
    const entry = active.get(id, NO_OPTIONS);
    return entry && isRecent(entry.askedMs, cacheMs) ? entry.claims : undefined;
  }

  async function ask(token: string, id: string): Promise<Claims> {
    requireAvailable();
    const exchange = new AbortController();
    exchanges.add(exchange);
    const deadline = schedule(() => exchange.abort(`did not respond within ${TIMEOUT_MS} ms`), TIMEOUT_MS);
    try {
      return await calls.run(() => callFor(token, id, exchange.signal), exchange.signal, active.has(id, NO_OPTIONS));
    } finally {
      deadline.cancel();
      exchanges.delete(exchange);
    }
  }

  function requireAvailable(): void {
    // Bounded because the clock may have stepped back since the failure.
    const pauseMs = Math.min(retryAtMs - clock(), BACK_OFF.longestMs);
    if (closed || pauseMs > 0) throw unavailable('the introspection endpoint is not asked for now', pauseMs);
  }

  async function callFor(token: string, id: string, signal: AbortSignal): Promise<Claims> {
    // The endpoint can have failed while this call waited.
    requireAvailable();
    const askedMs = clock();
    let claims: Claims | undefined;
    try {
      claims = await askAbout(token, signal);
    } catch (error) {
      throw failed(error);
    }
    recovered();
    if (!claims) {
      active.delete(id);
      inactive.set(id, askedMs, NO_OPTIONS);
      throw new AuthError('inactive');
    }
    inactive.delete(id);
    active.set(id, { claims: freezeDeep(claims), askedMs }, NO_OPTIONS);
    return claims;
  }

  function recovered(): void {
    if (failures > 0) logger.info({ issuer }, 'the introspection endpoint responds again');
    failures = 0;
    retryAtMs = -Infinity;
  }

  function failed(error: unknown): AuthError {
    const { message: detail, status } =
      error instanceof FetchError ? error : { message: 'introspection failed', status: undefined };
    if (closed) return unavailable(detail);
    if (isAboutOneToken(status)) warn(detail);
    else pause(detail, status);
    return unavailable(detail, retryAtMs - clock());
  }

  function warn(detail: string): void {
    if (isRecent(warnedMs, WARNING_EVERY_MS)) return;
    warnedMs = clock();
    logger.warn({ issuer, detail }, 'a token could not be introspected');
  }

  function pause(detail: string, status: number | undefined): void {
    // Calls that were under way at the same time fail together and count once.
    if (retryAtMs > clock()) return;
    retryAtMs = clock() + backOffMs(++failures, BACK_OFF, random);
    if (status === 401 || status === 403) {
      logger.error({ issuer, detail }, 'the authorization server refuses clientId or clientSecret of introspection');
    } else {
      logger.warn({ issuer, detail, failures }, 'the introspection endpoint is not available');
    }
  }

  return {
    get: (token) => cached(idOf(token)),
    introspect(token) {
      if (token.length > MAX_TOKEN_LENGTH) {
        const privateDetail = `an opaque token of more than ${MAX_TOKEN_LENGTH} characters`;
        return Promise.reject(new AuthError('malformed_token', { privateDetail }));
      }
      const id = idOf(token);
      const claims = cached(id);
      if (claims) return Promise.resolve(claims);
      if (isRecent(inactive.get(id, NO_OPTIONS), INACTIVE_MS)) return Promise.reject(new AuthError('inactive'));
      const known = inFlight.get(id);
      if (known) return known;
      const asking = ask(token, id).finally(() => inFlight.delete(id));
      inFlight.set(id, asking);
      return asking;
    },
    close() {
      closed = true;
      for (const exchange of exchanges) exchange.abort('is not asked any more');
    },
  };
}

/** Only the hash is kept: the memory of the process then holds no token that could be used. */
function idOf(token: string): string {
  return hash('sha256', token, 'base64');
}

/** Whether a failure can depend on the token: such a one must not stop the calls for others. */
function isAboutOneToken(status: number | undefined): boolean {
  return status !== undefined && [200, 400, 413, 422, 500].includes(status);
}

function unavailable(privateDetail: string, waitMs = 0): AuthError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new AuthError('introspection_unavailable', { privateDetail, retryAfterSeconds });
}

/** Runs a bounded number of calls at a time; the others wait. */
export interface CallQueue {
  /**
   * Runs a call when it is its turn.
   *
   * @param isKnown - goes before those that are not, and is never turned away
   * @throws AuthError `introspection_unavailable` when too many calls wait, or the signal aborts the wait
   */
  run<Value>(call: () => Promise<Value>, signal: AbortSignal, isKnown: boolean): Promise<Value>;
}

const MAX_CALLS = 16;
const MAX_WAITING = 256;

/** Makes an empty queue. */
export function callQueue(): CallQueue {
  const known = new Set<() => void>();
  const unknown = new Set<() => void>();
  let running = 0;

  function turn(signal: AbortSignal, isKnown: boolean): Promise<void> | undefined {
    if (running < MAX_CALLS) {
      running++;
      return undefined;
    }
    const waiting = isKnown ? known : unknown;
    if (!isKnown && unknown.size >= MAX_WAITING) throw busy();
    return new Promise((resolve, reject) => {
      waiting.add(start);
      signal.addEventListener('abort', giveUp);
      function start(): void {
        waiting.delete(start);
        signal.removeEventListener('abort', giveUp);
        running++;
        resolve();
      }
      function giveUp(): void {
        waiting.delete(start);
        reject(busy());
      }
    });
  }

  function next(): void {
    running--;
    const [start] = known.size > 0 ? known : unknown;
    start?.();
  }

  return {
    async run(call, signal, isKnown) {
      await turn(signal, isKnown);
      try {
        return await call();
      } finally {
        next();
      }
    },
  };
}

function busy(): AuthError {
  const privateDetail = 'too many tokens wait for the introspection endpoint';
  return new AuthError('introspection_unavailable', { privateDetail, retryAfterSeconds: 1 });
}
