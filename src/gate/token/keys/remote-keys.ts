import { LRUCache } from 'lru-cache';
import { callUnwaited } from '../../core/callbacks';
import { AuthError } from '../../core/errors';
import type { Clock, Schedule, Timer } from '../../core/clock';
import { ActivityPublisher } from '../../core/activity-channels';
import type { KeyStatus } from '../../core/gate-status';
import { errorLabel, errorText, type Logger } from '../../core/logger';
import { NO_OPTIONS } from '../../core/objects';
import { Outage, retryAfterSeconds } from '../../core/outage';
import { FetchError, OutgoingRequests } from '../../net/http';
import type { UnverifiedHeader } from '../jws';
import { NoUsableKey, type FetchedKeys } from './fetch-keys';
import { KeySet, unknownKey, type KeySource, type VerificationKey } from './key-set';
import type { KeptKeys } from './key-store';

/** What to do where keys were never fetched: as a rule the configuration is wrong. */
const CHECK =
  'check the issuer, and that this machine reaches it: tillgate check, of @tillgate/cli (docs/operations.md)';

/** The key set that an issuer publishes: how long its keys are used, and how often they are fetched. */
export interface RemoteKeysOptions {
  readonly issuer: string;
  readonly fetchKeys: (signal: AbortSignal) => Promise<FetchedKeys>;
  /** Where the last good key set is kept over restarts. */
  readonly kept?: KeptKeys | undefined;
  /** Longest time in ms for one fetch of the key set, discovery included. */
  readonly timeoutMs: number;
  /** Age in ms at which a key set is refreshed at the latest; so a removed key is refused within it. */
  readonly keysMaxAgeMs: number;
  /** How much longer in ms the last good key set serves while the issuer is down. */
  readonly keysStaleMs: number;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly random: () => number;
  readonly logger: Logger;
}

/**
 * Finds keys in the key set that an issuer publishes. A token whose key is cached does not wait. The first token with a
 * new key waits for one fetch, so a rotation refuses no request. Unknown key ids cost two fetches immediately and then
 * one per 5 s; while none is allowed, the response is 429, because the id may be that of a new key. 401 is only for tokens that
 * were issued before the issuer was asked: no earlier token can make a key unknown to them.
 */
export class RemoteKeys implements KeySource {
  readonly #published: KeyRefresh;
  readonly #unknown: UnknownKeys;

  constructor(options: RemoteKeysOptions) {
    this.#published = new KeyRefresh(options);
    this.#unknown = new UnknownKeys(options.clock);
  }

  find(header: UnverifiedHeader, checkToken: () => number): VerificationKey | Promise<VerificationKey> {
    if (this.#published.state() !== 'fresh') return this.#findLater(header, checkToken);
    const key = this.#findNow(header);
    if (key) return key;
    const iat = checkToken();
    if (this.#unknown.has(header.keyId ?? '', iat)) throw unknownKey(header);
    return this.#findUnknown(header, iat, this.#published.started);
  }

  has(key: VerificationKey): boolean {
    const state = this.#published.state();
    // Too old and no refresh has been tried, as after a pause of the process: the key may have been removed.
    if (state === 'stale' && this.#published.outage.failures === 0) return false;
    return (state === 'fresh' || state === 'stale') && this.#published.keys?.has(key) === true;
  }

  ready(): Promise<void> {
    return this.#published.ready;
  }

  status(): KeyStatus {
    return this.#published.status();
  }

  close(): void {
    this.#published.close();
  }

  /** Throws also where the last key set has a key of this id that must not be used. */
  #findNow(header: UnverifiedHeader): VerificationKey | undefined {
    const found = this.#published.keys?.find(header);
    if (!found) this.#refuseUnusable(header);
    return found;
  }

  async #findLater(header: UnverifiedHeader, checkToken: () => number): Promise<VerificationKey> {
    const startedBefore = this.#published.started;
    const usable = await this.#published.usableKeys();
    const found = usable?.find(header);
    if (found) return found;
    this.#refuseUnusable(header);
    if (!usable) throw this.#published.unavailable();
    return this.#findUnknown(header, checkToken(), startedBefore);
  }

  /**
   * Asks the issuer about an unknown id: it may be that of a key published a moment ago.
   *
   * @param startedBefore - fetches started before the token came: their key set does not prove that the id is unknown
   */
  async #findUnknown(header: UnverifiedHeader, iat: number, startedBefore: number): Promise<VerificationKey> {
    const id = header.keyId ?? '';
    const published = this.#published;
    await published.inFlight;
    let found = this.#findNow(header);
    if (!found && published.acceptedFetch <= startedBefore) {
      if (this.#unknown.has(id, iat)) throw unknownKey(header);
      if (published.outage.waitMs > 0) throw published.unavailable();
      // A fetch in flight here was started after the token came, on behalf of another one.
      if (!published.inFlight && !this.#unknown.takeFetch()) {
        // The issuer has withdrawn the key: that is known without another fetch.
        if (isIssuedBefore(iat, published.askedMs) && published.previous?.find(header)) throw unknownKey(header);
        throw this.#tooMany();
      }
      await published.refresh();
      found = this.#findNow(header);
    }
    if (found) return found;
    if (published.acceptedFetch <= startedBefore) throw published.unavailable();
    const { askedMs, copyAgeMs } = published;
    this.#unknown.add(id, askedMs);
    // A cache may have responded with a copy from before the token was issued.
    throw copyAgeMs > 0 && !isIssuedBefore(iat, askedMs) ? this.#tooMany() : unknownKey(header);
  }

  #tooMany(): AuthError {
    return new AuthError('too_many_unknown_keys', { retryAfterSeconds: retryAfterSeconds(this.#unknown.waitMs()) });
  }

  #refuseUnusable({ keyId }: UnverifiedHeader): void {
    const why = keyId === undefined ? undefined : this.#published.unusable(keyId);
    if (why !== undefined) throw new AuthError('unusable_key', { privateDetail: `the key is not used: ${why}` });
  }
}

const FETCHING_BACK_OFF = { firstMs: 1_000, longestMs: 30_000 };
/** Longest pause while there are no keys at all: every request is refused until the issuer responds. */
const LONGEST_WITHOUT_KEYS_MS = 5_000;

/**
 * The key set of one issuer as it was last fetched. Keeps it fresh in the background, ahead of its age limit, with one
 * fetch in flight. A failed or empty response never replaces a good set.
 */
export class KeyRefresh {
  readonly outage: Outage;
  /** The last good set, however old. */
  keys: KeySet | undefined;
  /** The last good set that had a key which its successor lacks. */
  previous: KeySet | undefined;
  /** Number of fetches started so far. */
  started = 0;
  /** Number of the fetch that returned `keys`; 0 before the first. */
  acceptedFetch = 0;
  /** How long a cache had kept the response with `keys`, in ms. */
  copyAgeMs = 0;
  /** The fetch in progress. Resolves also when it fails. */
  inFlight: Promise<void> | undefined;
  readonly ready: Promise<void>;
  readonly #options: RemoteKeysOptions;
  readonly #requests: OutgoingRequests;
  readonly #activity: ActivityPublisher<'keys'>;
  #fetchedAt = -Infinity;
  #unusable: { readonly keys: FetchedKeys['unusable']; readonly atMs: number } = { keys: new Map(), atMs: -Infinity };
  #timer: Timer | undefined;
  #closed = false;
  #announceReady!: () => void;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
    this.outage = new Outage(FETCHING_BACK_OFF, options.clock, options.random);
    this.#requests = new OutgoingRequests(options.schedule);
    this.#activity = new ActivityPublisher('keys', options.issuer, () => this.status());
    this.ready = new Promise((resolve) => (this.#announceReady = resolve));
    this.refreshLater();
    this.#activity.publish('opened');
  }

  /** Waits for a fetch if one is due; returns the keys that may be used then. */
  async usableKeys(): Promise<KeySet | undefined> {
    const due = this.outage.waitMs === 0;
    // Once a refresh has failed, the last good keys serve immediately and the next attempt runs in the background.
    if (this.state() === 'stale' && this.outage.failures > 0) {
      if (due) this.refreshLater();
    } else if (this.inFlight || due) {
      await this.refresh();
    }
    const state = this.state();
    return state === 'fresh' || state === 'stale' ? this.keys : undefined;
  }

  /** Starts a fetch, or joins the one in flight. */
  async refresh(): Promise<void> {
    if (this.#closed) return;
    this.inFlight ??= this.#fetch().finally(() => (this.inFlight = undefined));
    await this.inFlight;
  }

  /** The same, where nothing waits for it. */
  refreshLater(): void {
    const { issuer, logger } = this.#options;
    callUnwaited(
      () => this.refresh(),
      (error) => logger.error({ issuer, error: errorText(error) }, 'the key set is not refreshed'),
    );
  }

  async #fetch(): Promise<void> {
    const startedAt = this.#options.clock();
    const number = ++this.started;
    const restored = number === 1 && this.#options.kept ? this.#restore(this.#options.kept) : undefined;
    try {
      const fetchKeys = (signal: AbortSignal) => this.#activity.during(() => this.#options.fetchKeys(signal));
      const fetched = await this.#requests.run(this.#timeLimitMs(), fetchKeys);
      if (this.#closed) return;
      this.#accept(fetched, number, startedAt);
      this.#options.kept?.keep(fetched.jwks, startedAt);
    } catch (error) {
      if (this.#closed) return;
      if (error instanceof NoUsableKey) this.#unusable = { keys: error.unusable, atMs: startedAt };
      this.#fail(error);
    }
    // A request that waits for the first fetch finds the kept keys if that has failed.
    if (!restored || !(await restored) || this.acceptedFetch > 0) return;
    const { issuer, clock, logger } = this.#options;
    const ageMs = clock() - this.#fetchedAt;
    logger.warn({ issuer, ageMs }, 'the kept key set of an earlier process serves until the issuer responds');
    this.#announceReady();
  }

  /**
   * Takes over the key set that an earlier process kept, with its age: it is used for no longer than that process could
   * have used it, and never once a fetch has succeeded, so no removed key comes back.
   *
   * @returns whether it is in use
   */
  async #restore(kept: KeptKeys): Promise<boolean> {
    const restored = await kept.load();
    if (!restored || this.keys || this.#closed) return false;
    const { keys, unusable, fetchedAtMs } = restored;
    if (this.#stateAt(fetchedAtMs) === 'unavailable') {
      const { issuer, clock, logger } = this.#options;
      const fields = { issuer, ageMs: clock() - fetchedAtMs };
      logger.warn(fields, 'the kept key set is too old, or from the future: it is not used');
      return false;
    }
    this.keys = new KeySet(keys);
    this.#fetchedAt = fetchedAtMs;
    this.#unusable = { keys: unusable, atMs: fetchedAtMs };
    if (this.state() === 'fresh') this.#announceReady();
    return true;
  }

  /** The outcome is known before fresh keys reach their age limit: from a failure on, the last good keys serve without waiting. */
  #timeLimitMs(): number {
    const { timeoutMs, keysMaxAgeMs, clock } = this.#options;
    if (this.outage.failures > 0 || this.state() !== 'fresh') return timeoutMs;
    return Math.min(timeoutMs, Math.floor(0.8 * (this.#fetchedAt + keysMaxAgeMs - clock())));
  }

  #accept(fetched: FetchedKeys, number: number, startedAt: number): void {
    const { issuer, timeoutMs, keysMaxAgeMs, random, logger } = this.#options;
    const fresh = new KeySet(fetched.keys);
    this.#unusable = { keys: fetched.unusable, atMs: startedAt };
    if (this.keys && !this.keys.isWithin(fresh)) this.previous = this.keys;
    this.keys = fresh;
    this.acceptedFetch = number;
    // The keys were good when the request was sent: the time of the response is part of their age.
    this.#fetchedAt = startedAt;
    this.copyAgeMs = Math.min(fetched.ageMs ?? 0, keysMaxAgeMs);
    this.#announceReady();
    // With a short age limit the refresh starts early, to leave the issuer time to respond.
    const refreshFrom = keysMaxAgeMs < 10 * timeoutMs ? 0.5 : 0.7;
    // Spread out, so that the processes of a fleet do not ask at the same time.
    this.#refreshIn(keysMaxAgeMs * (refreshFrom + 0.2 * random()));
    this.outage.end((fields) => logger.info({ issuer, ...fields }, 'the key set of the issuer is available again'));
  }

  #fail(error: unknown): void {
    const { issuer, clock, logger } = this.#options;
    const detail = error instanceof FetchError ? error.message : `the key set could not be read: ${errorLabel(error)}`;
    const [message, more, longestMs] = this.keys
      ? (['the key set cannot be refreshed, the last good one serves', { ageMs: clock() - this.#fetchedAt }] as const)
      : (['the key set cannot be fetched', { advice: CHECK }, LONGEST_WITHOUT_KEYS_MS] as const);
    this.#refreshIn(this.outage.fail(detail, () => logger.warn({ issuer, detail, ...more }, message), longestMs));
  }

  #refreshIn(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.schedule(() => this.refreshLater(), delayMs);
  }

  /** When the issuer had exactly these keys: at the start of the request, less the `Age` of the response. */
  get askedMs(): number {
    return this.#fetchedAt - this.copyAgeMs;
  }

  /** Whether the keys may still be used. */
  state(): KeyStatus['state'] {
    return this.keys ? this.#stateAt(this.#fetchedAt) : 'starting';
  }

  /** A clock that stepped back makes the age of a response unknown, which counts as too old. */
  #stateAt(askedAt: number): 'fresh' | 'stale' | 'unavailable' {
    const { clock, keysMaxAgeMs, keysStaleMs } = this.#options;
    const ageMs = clock() - askedAt;
    if (ageMs >= 0 && ageMs < keysMaxAgeMs) return 'fresh';
    return ageMs >= 0 && ageMs < keysMaxAgeMs + keysStaleMs ? 'stale' : 'unavailable';
  }

  /** Why the key of an id must not be used, by the key set that the issuer responded with last; `undefined`: nothing is against it. */
  unusable(keyId: string): string | undefined {
    return this.#stateAt(this.#unusable.atMs) === 'unavailable' ? undefined : this.#unusable.keys.get(keyId);
  }

  status(): KeyStatus {
    const { lastError } = this.outage;
    return {
      state: this.state(),
      keys: this.keys?.size ?? 0,
      fetches: this.started,
      ...(this.keys && { ageMs: this.#options.clock() - this.#fetchedAt }),
      ...(lastError !== undefined && { lastError }),
    };
  }

  /** The refusal while it cannot be told whether a key is good: 503 until the pause after a failure is over. */
  unavailable(): AuthError {
    const { lastError: privateDetail, waitMs } = this.outage;
    return new AuthError('keys_unavailable', { privateDetail, retryAfterSeconds: retryAfterSeconds(waitMs) });
  }

  /** Aborts the fetch in flight and starts no other. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#requests.close();
    this.#activity.publish('closed');
  }
}

/** Fetches that are allowed immediately: enough for two rotations, too few for a flood. */
const BURST = 2;
/** A further fetch is allowed each time this has passed, so a rotation is seen within it also during a flood. */
const REFILL_MS = 5_000;
/** How long an id stays unknown: an issuer may sign with a new key moments before all its servers publish it. */
const REMEMBERED_MS = 30_000;
/** An id has 1,024 characters at most, so this is 2 MB at most. */
const MAX_REMEMBERED = 1_000;

/** Whether a token was issued before a moment: `iat` may be rounded down to its second. */
function isIssuedBefore(iat: number, momentMs: number): boolean {
  return (iat + 1) * 1000 <= momentMs;
}

/** Bounds what tokens with unknown key ids can cost: fetches and memory. */
class UnknownKeys {
  readonly #clock: Clock;
  readonly #ids = new LRUCache<string, { readonly addedMs: number; readonly askedMs: number }>({ max: MAX_REMEMBERED });
  /** When all fetches of the burst are available again. */
  #fullAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the issuer was asked about this id within the last 30 s, after a token was issued, and did not have it. */
  has(keyId: string, iat: number): boolean {
    const entry = this.#ids.get(keyId, NO_OPTIONS);
    const ageMs = this.#clock() - (entry?.addedMs ?? -Infinity);
    // Negative after the clock has stepped back.
    return entry !== undefined && ageMs >= 0 && ageMs < REMEMBERED_MS && isIssuedBefore(iat, entry.askedMs);
  }

  /** Remembers that the issuer had no key of this id when it was asked. */
  add(keyId: string, askedMs: number): void {
    this.#ids.set(keyId, { addedMs: this.#clock(), askedMs }, NO_OPTIONS);
  }

  /** Whether the issuer may be asked on behalf of an unknown id now; `true` counts as one fetch. */
  takeFetch(): boolean {
    if (this.waitMs() > 0) return false;
    this.#fullAt = Math.max(this.#fullAt, this.#clock()) + REFILL_MS;
    return true;
  }

  /** Time in ms until `takeFetch()` allows one; 0: now. */
  waitMs(): number {
    // Bounded because the clock may have stepped back.
    this.#fullAt = Math.min(this.#fullAt, this.#clock() + BURST * REFILL_MS);
    return Math.max(0, this.#fullAt - this.#clock() - (BURST - 1) * REFILL_MS);
  }
}
