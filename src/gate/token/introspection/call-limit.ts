import { LRUCache } from 'lru-cache';
import { AuthError } from '../../core/errors';
import type { Clock } from '../../core/clock';
import { NO_OPTIONS } from '../../core/objects';

/** The longest Retry-After of the endpoint that is believed. */
const LONGEST_PAUSE_MS = 60_000;
/** The pause after a 429 without Retry-After. */
const USUAL_PAUSE_MS = 5_000;
/** How long after a pause tokens that turn out inactive count against their sites. */
const COUNTED_MS = 60_000;
/** Such tokens of a site that the endpoint is asked about immediately; then one for each `ONE_MORE_MS`. */
const FREE_PER_SITE = 20;
const ONE_MORE_MS = 1_000;
/** What a site may have used that still has one call. */
const ALL_BUT_ONE_MS = (FREE_PER_SITE - 1) * ONE_MORE_MS;
const MAX_SITES = 10_000;

/**
 * Calls to an endpoint that its server limits per time. A 429 is no outage: calls are paused for its Retry-After. For a minute
 * after that, tokens that turn out inactive count against the sites of their callers, so that no site uses up the limit of all.
 */
export class CallLimit {
  readonly #clock: Clock;
  /** When the whole burst of a site is available again. */
  readonly #sites = new LRUCache<string, number>({ max: MAX_SITES });
  /** Calls that are under way, each with its site. */
  readonly #underWay = new Map<Promise<unknown>, string>();
  #pausedUntilMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Notes a 429.
   *
   * @param retryAfter - the header of the response (RFC 9110 section 10.2.3)
   * @returns whether sites were not counted until now
   */
  begin(retryAfter: string | undefined): boolean {
    const nowMs = this.#clock();
    const isFirst = !this.#isCounting();
    if (isFirst) this.#sites.clear();
    this.#pausedUntilMs = Math.max(isFirst ? nowMs : this.#pausedUntilMs, nowMs + pauseMs(retryAfter, nowMs));
    return isFirst;
  }

  /** Whether nobody is asked now. A longer pause than possible is over: the clock has stepped back. */
  get isPaused(): boolean {
    const pausedMs = this.#pausedUntilMs - this.#clock();
    return pausedMs > 0 && pausedMs <= LONGEST_PAUSE_MS;
  }

  /** The refusal of a token that the endpoint would have to be asked about in a pause. */
  get refusal(): AuthError {
    return tooMany('the introspection endpoint has responded with 429', this.#pausedUntilMs - this.#clock());
  }

  /**
   * Throws while no call is allowed.
   *
   * @param site - whose tokens count; `undefined` for a caller that is exempt
   * @throws AuthError `too_many_unknown_keys`
   */
  requireAllowed(site: string | undefined): void {
    if (this.isPaused) throw this.refusal;
    if (site === undefined || !this.#isCounting()) return;
    const waitMs = this.#usedMs(site) - ALL_BUT_ONE_MS;
    if (waitMs > 0) throw tooMany('too many opaque tokens of this network were not active', waitMs);
  }

  /**
   * Runs a call, which counts its token where it must. While all tokens of the site that are asked about would use up what is
   * left to it if they were inactive, the call waits for one of them.
   */
  async run<Value>(site: string | undefined, call: () => Promise<Value>): Promise<Value> {
    if (site === undefined) return call();
    for (let other = this.#rival(site); other; other = this.#rival(site)) await other;
    const calling = call();
    const ended: Promise<unknown> = calling.catch(() => undefined).then(() => this.#underWay.delete(ended));
    this.#underWay.set(ended, site);
    return calling;
  }

  /** The end of a call of a site, where another one has to wait for it. */
  #rival(site: string): Promise<unknown> | undefined {
    const leftMs = ALL_BUT_ONE_MS - this.#usedMs(site);
    const ofSite = [...this.#underWay.keys()].filter((each) => this.#underWay.get(each) === site);
    const isFull = this.#isCounting() && leftMs >= 0 && leftMs < ofSite.length * ONE_MORE_MS;
    return isFull ? Promise.race(ofSite) : undefined;
  }

  /** Counts a token that turned out inactive. */
  count(site: string | undefined): void {
    if (site === undefined || !this.#isCounting()) return;
    this.#sites.set(site, this.#clock() + this.#usedMs(site) + ONE_MORE_MS, NO_OPTIONS);
  }

  #isCounting(): boolean {
    const sinceMs = this.#clock() - this.#pausedUntilMs;
    return sinceMs >= -LONGEST_PAUSE_MS && sinceMs < COUNTED_MS;
  }

  /** Time until the whole burst of a site is available again. Bounded because the clock may have stepped back. */
  #usedMs(site: string): number {
    const leftMs = (this.#sites.get(site, NO_OPTIONS) ?? -Infinity) - this.#clock();
    return Math.min(2 * FREE_PER_SITE * ONE_MORE_MS, Math.max(0, leftMs));
  }
}

/** RFC 6585 section 4: an anonymous caller can cause it, so it is not a 5xx. */
function tooMany(privateDetail: string, waitMs: number): AuthError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new AuthError('too_many_unknown_keys', { privateDetail, retryAfterSeconds });
}

/** Retry-After is a number of seconds or a date. */
function pauseMs(retryAfter: string | undefined, nowMs: number): number {
  const isDate = retryAfter !== undefined && /^[A-Z][a-z]{2}, .* GMT$/.test(retryAfter);
  if (!isDate && !/^\d+$/.test(retryAfter ?? '')) return USUAL_PAUSE_MS;
  const givenMs = isDate ? Date.parse(retryAfter) - nowMs : Number(retryAfter) * 1000;
  return Number.isNaN(givenMs) ? USUAL_PAUSE_MS : Math.min(LONGEST_PAUSE_MS, Math.max(0, givenMs));
}

/** Callers before which no address counts as that of most. */
const FEW_CALLERS = 20;
const MAX_CALLERS = 1_000;

/** Notices where more than half of all callers have one address, as behind a proxy that the app does not trust. */
export class CallersByAddress {
  readonly #counts = new Map<string, number>();
  #callers = 0;

  /** Counts a caller. Returns whether more than half of all have its address. */
  isMostOf(address: string): boolean {
    if (this.#callers === MAX_CALLERS) {
      this.#counts.clear();
      this.#callers = 0;
    }
    const count = (this.#counts.get(address) ?? 0) + 1;
    this.#counts.set(address, count);
    return ++this.#callers >= FEW_CALLERS && 2 * count > this.#callers;
  }
}
