import { AuthError } from '../../core/auth-error';
import type { Clock, Schedule, Timer } from '../../core/clock';
import type { Logger } from '../../core/logger';
import type { FetchKeys } from './fetch-keys';
import { FetchError } from './fetch-json';
import { KeySet } from './key-source';
import type { KeyStatus } from './key-source';

/** How long the keys of an issuer are used, and how gently it is asked. */
export interface KeyRefreshOptions {
  readonly issuer: string;
  readonly fetchKeys: FetchKeys;
  /** Longest time in ms for one fetch of the key set, the search for its address included. */
  readonly timeoutMs: number;
  /** Age in ms at which a key set is refreshed at the latest; so a removed key is refused within it. */
  readonly maxAgeMs: number;
  /** How much longer in ms the last good key set serves while the issuer is down. */
  readonly staleMs: number;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
  readonly logger: Logger;
}

/** The key set of an issuer as it was last fetched. */
export interface KeyRefresh {
  /** The last good set, however old. */
  readonly keys: KeySet | undefined;
  /** Fetches begun so far. */
  readonly begun: number;
  /** Number of the fetch that brought `keys`; 0 before. */
  readonly answered: number;
  /** The fetch under way. It resolves also when it fails: the state says what came of it. */
  readonly inFlight: Promise<void> | undefined;
  /** Whether the last fetch failed. */
  readonly failing: boolean;
  /** Whether the pause after a failure is not over yet. */
  readonly heldBack: boolean;
  /** Fetches, or joins the fetch under way. */
  refresh(): Promise<void>;
  state(): KeyStatus['state'];
  status(): KeyStatus;
  /** The answer while nobody can tell: 503, and when to try again. */
  unavailable(): AuthError;
  ready(): Promise<void>;
  /** Ends the fetch under way and begins no other. */
  close(): void;
}

const FIRST_BACK_OFF_MS = 1_000;
const LONGEST_BACK_OFF_MS = 30_000;
/** Timers of Node hold no more than 31 bits and fire at once beyond. */
const LONGEST_DELAY_MS = 2_147_483_647;

/**
 * Keeps the key set of one issuer fresh in the background, ahead of its age limit, with one fetch in flight. A failed
 * or empty answer never replaces a good set.
 */
export function keyRefresh(options: KeyRefreshOptions): KeyRefresh {
  const { clock, schedule, random, logger, issuer, timeoutMs } = options;
  let keys: KeySet | undefined;
  let fetchedAt = -Infinity;
  let begun = 0;
  let answered = 0;
  let inFlight: Promise<void> | undefined;
  let underWay: AbortController | undefined;
  let timer: Timer | undefined;
  let closed = false;
  let failures = 0;
  let retryAt = -Infinity;
  let lastError: string | undefined;
  let announceReady: () => void;
  const ready = new Promise<void>((resolve) => (announceReady = resolve));

  async function refresh(): Promise<void> {
    if (closed) return;
    inFlight ??= fetchOnce().finally(() => (inFlight = undefined));
    await inFlight;
  }

  async function fetchOnce(): Promise<void> {
    const startedAt = clock();
    const number = ++begun;
    const exchange = (underWay = new AbortController());
    const deadline = schedule(() => exchange.abort(`did not answer within ${timeoutMs} ms`), timeoutMs);
    try {
      const fresh = new KeySet(await options.fetchKeys(exchange.signal));
      if (!closed) accept(fresh, number, startedAt);
    } catch (error) {
      if (!closed) fail(error);
    } finally {
      deadline.cancel();
    }
  }

  function accept(fresh: KeySet, number: number, startedAt: number): void {
    const recovered = failures > 0;
    keys = fresh;
    answered = number;
    // The keys were good when they were asked for; how long the answer took is part of their age.
    fetchedAt = startedAt;
    failures = 0;
    retryAt = -Infinity;
    lastError = undefined;
    announceReady();
    // Ahead of the age limit, and spread out, so that a fleet does not ask in step.
    refreshIn(options.maxAgeMs * (0.7 + 0.2 * random()));
    if (recovered) logger.info({ issuer }, 'the key set of the issuer is available again');
  }

  function fail(error: unknown): void {
    const backOffMs = Math.min(FIRST_BACK_OFF_MS * 2 ** failures, LONGEST_BACK_OFF_MS) * (0.5 + random() / 2);
    failures++;
    lastError = error instanceof FetchError ? error.message : 'the key set could not be read';
    retryAt = clock() + backOffMs;
    refreshIn(backOffMs);
    const message = keys
      ? 'the key set cannot be refreshed, the last good one serves'
      : 'the key set cannot be fetched';
    logger.warn({ issuer, detail: lastError, failures, ageMs: keys && clock() - fetchedAt }, message);
  }

  function refreshIn(delayMs: number): void {
    timer?.cancel();
    timer = schedule(() => void refresh(), Math.min(delayMs, LONGEST_DELAY_MS));
  }

  /** Whether the keys may still be used; a clock that stepped back makes the age unknown, and unknown is too old. */
  function state(): KeyStatus['state'] {
    if (!keys) return 'starting';
    const ageMs = clock() - fetchedAt;
    if (ageMs >= 0 && ageMs < options.maxAgeMs) return 'fresh';
    return ageMs >= 0 && ageMs < options.maxAgeMs + options.staleMs ? 'stale' : 'unavailable';
  }

  void refresh();
  return {
    get keys() {
      return keys;
    },
    get begun() {
      return begun;
    },
    get answered() {
      return answered;
    },
    get inFlight() {
      return inFlight;
    },
    get failing() {
      return failures > 0;
    },
    get heldBack() {
      return clock() < retryAt;
    },
    refresh,
    state,
    status() {
      return {
        state: state(),
        keys: keys?.size ?? 0,
        fetches: begun,
        ...(keys && { ageMs: clock() - fetchedAt }),
        ...(lastError !== undefined && { lastError }),
      };
    },
    unavailable() {
      // Never later than the longest pause: the clock may have stepped back since.
      const waitMs = Math.min(retryAt - clock(), LONGEST_BACK_OFF_MS);
      const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
      return new AuthError('keys_unavailable', { privateDetail: lastError, retryAfterSeconds });
    },
    ready: () => ready,
    close() {
      closed = true;
      timer?.cancel();
      underWay?.abort('is not asked any more');
    },
  };
}
