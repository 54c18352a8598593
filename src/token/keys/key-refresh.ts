import { AuthError } from '../../core/auth-error';
import { backOffMs } from '../../core/clock';
import type { Clock, Schedule, Timer } from '../../core/clock';
import { errorLabel } from '../../core/logger';
import type { Logger } from '../../core/logger';
import { NoUsableKey } from './fetch-keys';
import type { FetchedKeys, FetchKeys, UnusableKeys } from './fetch-keys';
import { FetchError } from './fetch-json';
import { KeySet } from './key-set';
import type { KeyStatus } from '../../core/gate-status';

/** How long the keys of an issuer are used, and how gently it is asked. */
export interface KeyRefreshOptions {
  readonly issuer: string;
  readonly fetchKeys: FetchKeys;
  /** Longest time in ms for one fetch of the key set, discovery included. */
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
  /** Why the key of an id must not be used, by the key set that the issuer responded with last; `undefined`: nothing is against it. */
  unusable(keyId: string): string | undefined;
  /** The last good set that had a key which its successor lacks. */
  readonly previous: KeySet | undefined;
  /** Number of fetches started so far. */
  readonly started: number;
  /** Number of the fetch that returned `keys`; 0 before the first. */
  readonly keysFetch: number;
  /** The fetch in progress. Resolves also when it fails. */
  readonly inFlight: Promise<void> | undefined;
  /** Whether the last fetch failed. */
  readonly isFailing: boolean;
  /** Whether the pause after a failure is not over yet. */
  readonly isBackingOff: boolean;
  /** Starts a fetch, or joins the one in flight. */
  refresh(): Promise<void>;
  state(): KeyStatus['state'];
  status(): KeyStatus;
  /** The refusal while it cannot be told whether a key is good: 503; by default until the pause after a failure is over. */
  unavailable(waitMs?: number): AuthError;
  ready(): Promise<void>;
  /** Aborts the fetch in flight and starts no other. */
  close(): void;
}

const BACK_OFF = { firstMs: 1_000, longestMs: 30_000 };

/**
 * Keeps the key set of one issuer fresh in the background, ahead of its age limit, with one fetch in flight. A failed
 * or empty response never replaces a good set.
 */
export function keyRefresh(options: KeyRefreshOptions): KeyRefresh {
  const { clock, schedule, random, logger, issuer, timeoutMs, maxAgeMs } = options;
  // With a short age limit the refresh starts early, to leave the issuer time to respond.
  const refreshFrom = maxAgeMs < 10 * timeoutMs ? 0.5 : 0.7;
  let keys: KeySet | undefined;
  let previous: KeySet | undefined;
  let fetchedAt = -Infinity;
  let unusable: UnusableKeys = new Map();
  let unusableAt = -Infinity;
  let started = 0;
  let keysFetch = 0;
  let inFlight: Promise<void> | undefined;
  let exchange: AbortController | undefined;
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
    const number = ++started;
    const current = (exchange = new AbortController());
    const limitMs = timeLimitMs();
    const deadline = schedule(() => current.abort(`did not respond within ${limitMs} ms`), limitMs);
    try {
      const fetched = await options.fetchKeys(current.signal);
      if (!closed) accept(fetched, number, startedAt);
    } catch (error) {
      if (closed) return;
      if (error instanceof NoUsableKey) [unusable, unusableAt] = [error.unusable, startedAt];
      fail(error);
    } finally {
      deadline.cancel();
    }
  }

  /** The outcome is known before fresh keys reach their age limit: from a failure on, the last good keys serve without waiting. */
  function timeLimitMs(): number {
    if (failures > 0 || state() !== 'fresh') return timeoutMs;
    return Math.min(timeoutMs, Math.floor(0.8 * (fetchedAt + maxAgeMs - clock())));
  }

  function accept(fetched: FetchedKeys, number: number, startedAt: number): void {
    const recovered = failures > 0;
    const fresh = new KeySet(fetched.keys);
    [unusable, unusableAt] = [fetched.unusable, startedAt];
    if (keys && !keys.isWithin(fresh)) previous = keys;
    keys = fresh;
    keysFetch = number;
    // The keys were good when the request was sent: the time of the response is part of their age.
    fetchedAt = startedAt;
    failures = 0;
    retryAt = -Infinity;
    lastError = undefined;
    announceReady();
    // Spread out, so that the processes of a fleet do not ask at the same time.
    refreshIn(maxAgeMs * (refreshFrom + 0.2 * random()));
    if (recovered) logger.info({ issuer }, 'the key set of the issuer is available again');
  }

  function fail(error: unknown): void {
    failures++;
    const pauseMs = backOffMs(failures, BACK_OFF, random);
    lastError = error instanceof FetchError ? error.message : `the key set could not be read: ${errorLabel(error)}`;
    retryAt = clock() + pauseMs;
    refreshIn(pauseMs);
    const message = keys
      ? 'the key set cannot be refreshed, the last good one serves'
      : 'the key set cannot be fetched';
    logger.warn({ issuer, detail: lastError, failures, ageMs: keys && clock() - fetchedAt }, message);
  }

  function refreshIn(delayMs: number): void {
    timer?.cancel();
    timer = schedule(() => void refresh(), delayMs);
  }

  /** Whether the keys may still be used. */
  function state(): KeyStatus['state'] {
    return keys ? stateAt(fetchedAt) : 'starting';
  }

  /** A clock that stepped back makes the age of a response unknown, which counts as too old. */
  function stateAt(askedAt: number): 'fresh' | 'stale' | 'unavailable' {
    const ageMs = clock() - askedAt;
    if (ageMs >= 0 && ageMs < maxAgeMs) return 'fresh';
    return ageMs >= 0 && ageMs < maxAgeMs + options.staleMs ? 'stale' : 'unavailable';
  }

  void refresh();
  return {
    get keys() {
      return keys;
    },
    get previous() {
      return previous;
    },
    get started() {
      return started;
    },
    get keysFetch() {
      return keysFetch;
    },
    get inFlight() {
      return inFlight;
    },
    get isFailing() {
      return failures > 0;
    },
    get isBackingOff() {
      return clock() < retryAt;
    },
    unusable: (keyId) => (stateAt(unusableAt) === 'unavailable' ? undefined : unusable.get(keyId)),
    refresh,
    state,
    status() {
      return {
        state: state(),
        keys: keys?.size ?? 0,
        fetches: started,
        ...(keys && { ageMs: clock() - fetchedAt }),
        ...(lastError !== undefined && { lastError }),
      };
    },
    unavailable(waitMs = retryAt - clock()) {
      // Bounded because the clock may have stepped back since the failure.
      const retryAfterSeconds = Math.max(1, Math.ceil(Math.min(waitMs, BACK_OFF.longestMs) / 1000));
      return new AuthError('keys_unavailable', { privateDetail: lastError, retryAfterSeconds });
    },
    ready: () => ready,
    close() {
      closed = true;
      timer?.cancel();
      exchange?.abort('is not asked any more');
    },
  };
}
