import { hash, randomUUID } from 'node:crypto';
import * as timers from 'node:timers';
import { LRUCache } from 'lru-cache';
import { AuthError } from '../../core/errors';
import type { Clock, Schedule } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { NO_OPTIONS } from '../../core/objects';
import { Outage, retryAfterSeconds } from '../../core/outage';
import { FairQueue } from '../fair-queue';
import type { Caller } from '../fair-queue';
import { Exchanges, FetchError } from '../http';
import { MAX_TOKEN_LENGTH } from '../jws';
import type { JsonObject } from '../strict-json';
import type { introspectionEndpoint } from './endpoint';

/** Knows which opaque tokens are active, by asking their issuer. */
interface Introspector<Known> {
  /** What is known about a token that was active at most `cacheMs` ago, the same object each time; `undefined`: ask. */
  readonly get: (token: string) => Known | undefined;
  /**
   * Asks about a token. Rejects with an AuthError `malformed_token`, `inactive`, `introspection_unavailable`, or
   * `too_many_unknown_keys` where too many tokens of the same client or site wait.
   *
   * @param caller - counts until the token was active once, then its client does
   */
  readonly introspect: (token: string, caller?: Caller) => Promise<Known>;
  /** Tokens whose response is pending. */
  readonly waiting: () => number;
  /** Ends the open calls; later ones reject. */
  readonly close: () => void;
}

/** The last response about an active token. */
interface Response<Known> {
  readonly known: Known;
  readonly client: string | undefined;
  readonly askedMs: number;
}

/** For one token: its turn and the call. */
const RESPONSE_TIMEOUT_MS = 5_000;
/** How long a token counts as inactive: it may have been issued a moment ago by another server of the issuer. */
const INACTIVE_MS = 5_000;
/** Calls: 16 at the same time where one unit is alone. */
const LIMITS = { running: 32, waiting: 256 };
const MAX_ACTIVE = 5_000;
const MAX_INACTIVE = 10_000;
const ASKING_BACK_OFF = { firstMs: 250, longestMs: 5_000 };
/** Time between two probes with a token of the gate: the shortest pause. */
const PROBE_EVERY_MS = 125;
/** Pause between two warnings about responses that only some tokens get. */
const WARNING_EVERY_MS = 60_000;

/**
 * Makes an introspector. Tokens are remembered by their SHA-256. However many tokens callers make up, the issuer gets a
 * bounded number of calls at a time, one per token, shared fairly by clients and sites.
 */
export function introspector<Known extends object>({
  issuer,
  askAbout,
  trust,
  clientOf,
  cacheMs,
  logger,
  clock,
  schedule,
  random,
}: {
  readonly issuer: string;
  readonly askAbout: ReturnType<typeof introspectionEndpoint>;
  /** Makes what is cached from the response about an active token. */
  readonly trust: (claims: JsonObject) => Known;
  /** Names the client of a response, `undefined` where it names none. */
  readonly clientOf: (claims: JsonObject) => string | undefined;
  readonly cacheMs: number;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
}): Introspector<Known> {
  const active = new LRUCache<string, Response<Known>>({ max: MAX_ACTIVE });
  const inactive = new LRUCache<string, number>({ max: MAX_INACTIVE });
  const inFlight = new Map<string, Promise<Known>>();
  const calls = new FairQueue(LIMITS, 'opaque tokens');
  const exchanges = new Exchanges(schedule);
  const turns = new Turns();
  const outage = new Outage(ASKING_BACK_OFF, clock, random);
  let closed = false;
  let warnedMs = -Infinity;
  let probing = false;
  let probedMs = -Infinity;

  /** A negative age, after the clock has stepped back, is too old. */
  function isRecent(sinceMs: number | undefined, limitMs: number): boolean {
    const ageMs = clock() - (sinceMs ?? -Infinity);
    return ageMs >= 0 && ageMs < limitMs;
  }

  function cached(id: string): Known | undefined {
    const entry = active.get(id, NO_OPTIONS);
    return entry && isRecent(entry.askedMs, cacheMs) ? entry.known : undefined;
  }

  async function ask(token: string, id: string, caller: Caller): Promise<Known> {
    requireAvailable();
    const client = active.get(id, NO_OPTIONS)?.client;
    return exchanges.run(RESPONSE_TIMEOUT_MS, (signal) => {
      return calls.run({ ...caller, client }, 1, () => callFor(token, id, signal), signal);
    });
  }

  function requireAvailable(): void {
    const { waitMs } = outage;
    if (closed || waitMs > 0) throw unavailable('the introspection endpoint is not asked for now', waitMs);
  }

  async function callFor(token: string, id: string, signal: AbortSignal): Promise<Known> {
    await turns.next();
    // The endpoint can have failed while this call waited.
    requireAvailable();
    const askedMs = clock();
    let claims: JsonObject | undefined;
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
    const known = trust(claims);
    active.set(id, { known, client: clientOf(claims), askedMs }, NO_OPTIONS);
    return known;
  }

  function recovered(): void {
    outage.end((fields) => logger.info({ issuer, ...fields }, 'the introspection endpoint responds again'));
  }

  function failed(error: unknown): AuthError {
    const { message } = failureOf(error);
    const { waitMs } = outage;
    // A logger that throws must not end the process.
    if (!closed && waitMs === 0) probe(message).catch(() => undefined);
    return unavailable(message, waitMs);
  }

  /**
   * Asks about a token that no caller has chosen. Only if that fails too, the calls for all are paused: a firewall before
   * the issuer that refuses one token must not stop those for others.
   */
  async function probe(detail: string): Promise<void> {
    if (probing || isRecent(probedMs, PROBE_EVERY_MS)) return;
    probing = true;
    probedMs = clock();
    try {
      await exchanges.run(RESPONSE_TIMEOUT_MS, (signal) => askAbout(`made-up-by-tillgate-${randomUUID()}`, signal));
    } catch (error) {
      if (!closed) pause(failureOf(error));
      return;
    } finally {
      probing = false;
    }
    recovered();
    warn(detail);
  }

  function warn(detail: string): void {
    if (isRecent(warnedMs, WARNING_EVERY_MS)) return;
    warnedMs = clock();
    logger.warn({ issuer, detail }, 'a token could not be introspected');
  }

  function pause({ message, status }: Failure): void {
    outage.fail(message, (fields) => {
      if (status === 401 || status === 403) {
        logger.error(
          { issuer, ...fields },
          'the authorization server refuses clientId or clientSecret of introspection',
        );
      } else {
        logger.warn({ issuer, ...fields }, 'the introspection endpoint is not available');
      }
    });
  }

  return {
    get: (token) => cached(idOf(token)),
    waiting: () => inFlight.size,
    introspect(token, caller = {}) {
      if (token.length > MAX_TOKEN_LENGTH) {
        const privateDetail = `an opaque token of more than ${MAX_TOKEN_LENGTH} characters`;
        return Promise.reject(new AuthError('malformed_token', { privateDetail }));
      }
      const id = idOf(token);
      const known = cached(id);
      if (known) return Promise.resolve(known);
      if (isRecent(inactive.get(id, NO_OPTIONS), INACTIVE_MS)) return Promise.reject(new AuthError('inactive'));
      const underWay = inFlight.get(id);
      if (underWay) return underWay;
      const asking = ask(token, id, caller).finally(() => inFlight.delete(id));
      inFlight.set(id, asking);
      return asking;
    },
    close() {
      closed = true;
      exchanges.close();
    },
  };
}

/** The real timers: an app may fake them in its tests, before or after it loads this file. */
const { setImmediate: defer } = timers;
/** Turns of the event loop from the start of one call to that of the next. */
const TURNS_PER_CALL = 4;

/**
 * Spaces out the starts of calls. Node accepts one connection in each turn of the event loop, in the order in which they came:
 * if a turn did the work of many calls, the connections of other callers would wait before fairness can apply to them. While
 * a call waits the loop does not sleep, so a process that has nothing else to do loses nothing.
 */
class Turns {
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

  /** `undefined`: start now. */
  next(): Promise<void> | undefined {
    if (this.#isTaken) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#take();
    return undefined;
  }

  #take(left = TURNS_PER_CALL): void {
    this.#isTaken = left > 0;
    if (left > 0) defer(() => this.#take(left - 1));
    else this.#startNext();
  }

  #startNext(): void {
    const start = this.#waiting.shift();
    if (!start) return;
    this.#take();
    start();
  }
}

/** Only the hash is kept: the memory of the process then holds no token that could be used. */
function idOf(token: string): string {
  return hash('sha256', token, 'base64');
}

type Failure = Pick<FetchError, 'message' | 'status'>;

function failureOf(error: unknown): Failure {
  return error instanceof FetchError ? error : { message: 'introspection failed', status: undefined };
}

function unavailable(privateDetail: string, waitMs: number): AuthError {
  return new AuthError('introspection_unavailable', { privateDetail, retryAfterSeconds: retryAfterSeconds(waitMs) });
}
