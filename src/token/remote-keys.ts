import { LRUCache } from 'lru-cache';
import { AuthError } from '../core/auth-error';
import type { Clock, Schedule, Timer } from '../core/clock';
import type { Logger } from '../core/logger';
import type { FetchKeys } from './fetch-keys';
import { FetchError } from './fetch-json';
import type { UnverifiedHeader } from './jws';
import type { VerificationKey } from './jwk';
import { KeySet } from './key-source';
import type { KeySource, KeyStatus } from './key-source';

/** How long the keys of an issuer are used, and how gently it is asked. */
export interface RemoteKeysOptions {
  readonly issuer: string;
  readonly fetchKeys: FetchKeys;
  /** Age in ms at which a key set is refreshed at the latest; so a removed key is refused within it. */
  readonly maxAgeMs: number;
  /** How much longer in ms the last good key set serves while the issuer is down. */
  readonly staleMs: number;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
  readonly logger: Logger;
}

const FIRST_BACK_OFF_MS = 1_000;
const LONGEST_BACK_OFF_MS = 30_000;
/** Unknown key ids may cause this many fetches per window: enough for two rotations, too few to be a flood. */
const UNKNOWN_KEY_FETCHES = 2;
const UNKNOWN_KEY_WINDOW_MS = 30_000;

/**
 * Keeps the key set of one issuer: refreshed in the background ahead of its age limit, one fetch in flight, the last
 * good set kept for a bounded time. A failed or empty answer never replaces good keys.
 */
export function remoteKeys(options: RemoteKeysOptions): KeySource {
  const { clock, schedule, random, logger, issuer } = options;
  let keys: KeySet | undefined;
  let fetchedAt = -Infinity;
  let inFlight: Promise<void> | undefined;
  let timer: Timer | undefined;
  let closed = false;
  let failures = 0;
  let retryAt = -Infinity;
  let lastError: string | undefined;
  let fetches = 0;
  const unknown = new LRUCache<string, true>({ max: 10_000 });
  let unknownFetches: number[] = [];
  let announceReady: () => void;
  const ready = new Promise<void>((resolve) => (announceReady = resolve));

  /** One fetch in flight, whoever asks. Resolves also when it fails: the state says what came of it. */
  function refresh(): Promise<void> {
    inFlight ??= fetchOnce().finally(() => (inFlight = undefined));
    return inFlight;
  }

  async function fetchOnce(): Promise<void> {
    const startedAt = clock();
    fetches++;
    try {
      accept(new KeySet(await options.fetchKeys()), startedAt);
    } catch (error) {
      fail(error);
    }
  }

  function accept(fresh: KeySet, startedAt: number): void {
    if (failures > 0) logger.info({ issuer }, 'the key set of the issuer is available again');
    keys = fresh;
    fetchedAt = startedAt;
    failures = 0;
    retryAt = -Infinity;
    lastError = undefined;
    unknown.clear();
    announceReady();
    // Ahead of the age limit, and spread out, so that a fleet does not ask in step.
    refreshIn(options.maxAgeMs * (0.7 + 0.2 * random()));
  }

  function fail(error: unknown): void {
    const backOffMs = Math.min(FIRST_BACK_OFF_MS * 2 ** failures, LONGEST_BACK_OFF_MS) * (0.5 + random() / 2);
    failures++;
    lastError = error instanceof FetchError ? error.message : 'the key set could not be read';
    retryAt = clock() + backOffMs;
    const message = keys
      ? 'the key set cannot be refreshed, the last good one serves'
      : 'the key set cannot be fetched';
    logger.warn({ issuer, detail: lastError, failures, ageMs: keys && clock() - fetchedAt }, message);
    refreshIn(backOffMs);
  }

  function refreshIn(delayMs: number): void {
    timer?.cancel();
    if (!closed) timer = schedule(() => void refresh(), delayMs);
  }

  /** Whether the keys may still be used; a clock that stepped back makes the age unknown, and unknown is too old. */
  function state(): KeyStatus['state'] {
    if (!keys) return 'starting';
    const ageMs = clock() - fetchedAt;
    if (ageMs >= 0 && ageMs < options.maxAgeMs) return 'fresh';
    return ageMs >= 0 && ageMs < options.maxAgeMs + options.staleMs ? 'stale' : 'unavailable';
  }

  /** Keys that may be used now, after a fetch where one is due. */
  async function usableKeys(): Promise<KeySet> {
    const due = clock() >= retryAt;
    // Once a refresh has failed, the last good keys serve at once and the next attempt runs in the background.
    if (state() === 'stale' && failures > 0) void (due && refresh());
    else if (inFlight || due) await refresh();
    const now = state();
    if (keys && (now === 'fresh' || now === 'stale')) return keys;
    throw keysUnavailable();
  }

  function keysUnavailable(): AuthError {
    const retryAfterSeconds = Math.max(1, Math.ceil((retryAt - clock()) / 1000));
    return new AuthError('keys_unavailable', { privateDetail: lastError, retryAfterSeconds });
  }

  /** RFC 7517 leaves rotation to the issuer: an unknown id may be a key that is minutes old, so ask once more. */
  async function findUnknown(header: UnverifiedHeader): Promise<VerificationKey> {
    const startedBefore = inFlight;
    if (startedBefore) await startedBefore;
    const found = keys?.find(header) ?? (await findAfterFetch(header));
    if (found) return found;
    throw new AuthError('unknown_key');
  }

  async function findAfterFetch(header: UnverifiedHeader): Promise<VerificationKey | undefined> {
    const id = header.keyId ?? '';
    const heldBack = clock() < retryAt;
    if (unknown.has(id) || !(heldBack || mayFetchForUnknown())) return undefined;
    if (!heldBack) await refresh();
    const found = keys?.find(header);
    if (found) return found;
    // An issuer that does not answer says nothing about the key: that is an outage, not a bad token.
    if (failures > 0) throw keysUnavailable();
    unknown.set(id, true);
    return undefined;
  }

  function mayFetchForUnknown(): boolean {
    if (inFlight) return true;
    const now = clock();
    unknownFetches = unknownFetches.filter((at) => at <= now && now - at < UNKNOWN_KEY_WINDOW_MS);
    if (unknownFetches.length >= UNKNOWN_KEY_FETCHES) return false;
    unknownFetches.push(now);
    return true;
  }

  async function findLater(header: UnverifiedHeader): Promise<VerificationKey> {
    const usable = await usableKeys();
    return usable.find(header) ?? (await findUnknown(header));
  }

  void refresh();
  return {
    find(header) {
      if (state() !== 'fresh') return findLater(header);
      const key = keys?.find(header);
      if (key) return key;
      if (unknown.has(header.keyId ?? '')) throw new AuthError('unknown_key');
      return findUnknown(header);
    },
    has(key) {
      const now = state();
      return (now === 'fresh' || now === 'stale') && keys?.has(key) === true;
    },
    ready: () => ready,
    status() {
      const ageMs = keys ? clock() - fetchedAt : undefined;
      return {
        state: state(),
        keys: keys?.size ?? 0,
        fetches,
        ...(ageMs !== undefined && { ageMs }),
        ...(lastError !== undefined && { lastError }),
      };
    },
    close() {
      closed = true;
      timer?.cancel();
    },
  };
}
