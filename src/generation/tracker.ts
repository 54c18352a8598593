import { AuthError } from '../core/auth-error';
import type { Clock, Schedule } from '../core/clock';
import type { Logger } from '../core/logger';
import { Floors } from './floors';
import { Follower } from './follower';
import { Freshness } from './freshness';
import type { FreshnessState } from './freshness';
import { readGeneration } from './read-generation';
import type { GenerationRule } from './read-generation';
import { isLive } from './source';
import type { GenerationSource } from './source';

/** How the generations of one issuer are tracked. */
export interface TrackerOptions {
  readonly issuer: string;
  readonly rule: GenerationRule;
  /** Whether tokens raise floors; `false` where the claim is `iat`, which says nothing about changes. */
  readonly learn: boolean;
  /** Where floors come from; without one they are learned from tokens only. */
  readonly source?: GenerationSource | undefined;
  /** Whether `close()` closes the source too: for a source that was made for this tracker. Default `false`. */
  readonly ownsSource?: boolean | undefined;
  /** Longest `exp - iat` that verification accepts, in ms: older floors are dropped. */
  readonly maxTokenAgeMs: number;
  /** Tolerance between clocks, in ms. */
  readonly skewMs: number;
  /** Age of the last complete read, in ms, past which `onStale` decides. */
  readonly maxStalenessMs: number;
  /** Refuses with 503, or passes with a warning, while the floors may be out of date. */
  readonly onStale: 'reject' | 'accept';
  /** Longest pause between reads, in ms. Default 5000. */
  readonly pollMs?: number | undefined;
  /** Longest time for one read, in ms. Default 5000. */
  readonly readTimeoutMs?: number | undefined;
  /** How far each read reaches back behind the one before, in ms. Default 60000. */
  readonly overlapMs?: number | undefined;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly logger: Logger;
  readonly random?: (() => number) | undefined;
}

/** What operators see. */
export interface GenerationStatus {
  readonly source: 'none' | FreshnessState;
  /** Age of the last complete read in ms; absent before it, negative while the clock has stepped back. */
  readonly ageMs?: number;
  readonly floors: number;
  /** Why the last read failed; for operators only. */
  readonly lastError?: string;
  readonly reads: number;
  readonly failures: number;
}

/** The floors of one issuer, and whether they can be relied on. */
export interface GenerationTracker {
  /**
   * Checks the generation of a token that has passed every other check, learns from it, and returns it.
   *
   * @throws AuthError `generation_missing`, `generation_invalid`, `superseded` or `generations_unavailable`.
   */
  admit(clientId: string, claims: Readonly<Record<string, unknown>>): number;
  /**
   * Checks a generation that has been admitted before: floor and freshness alone.
   *
   * @throws AuthError `superseded` or `generations_unavailable`.
   */
  check(clientId: string, generation: number): void;
  /** Resolves once the first read attempt has ended, whatever came of it; `undefined` from then on. */
  settled(): Promise<void> | undefined;
  /** Resolves after the first complete read; retries until then and never rejects. */
  ready(): Promise<void>;
  status(): GenerationStatus;
  close(): Promise<void>;
}

/** Tracks the generations of one issuer; a source is followed from now on. */
export function trackGenerations(options: TrackerOptions): GenerationTracker {
  const { issuer, rule, learn, source, maxStalenessMs, onStale, clock, logger } = options;
  // Own members only: a polluted prototype must not change how a source is read.
  const own = { __proto__: null, ...options } as TrackerOptions;
  const { pollMs = 5_000, readTimeoutMs = 5_000, overlapMs = 60_000, random = Math.random, ownsSource } = own;
  const fields = { issuer };
  const floors = new Floors(options);
  const freshness = new Freshness(maxStalenessMs, clock);
  const defaults = { pollMs, readTimeoutMs, overlapMs, random };
  const live = isLive(source) ? source : undefined;
  const follower =
    source && !live ? new Follower({ ...options, ...defaults, source, floors, freshness, fields }) : undefined;
  const retryAfterSeconds = Math.min(30, Math.max(1, Math.ceil(pollMs / 1000)));
  let starting: Promise<void> | undefined = follower?.start().finally(() => (starting = undefined));
  let warned = false;

  function floorOf(clientId: string): number | undefined {
    const learned = floors.get(clientId);
    const told = live?.floorOf(clientId);
    return told === undefined || (learned !== undefined && learned > told) ? learned : told;
  }

  /** What is known to be superseded stays so, however old the knowledge is. */
  function refuseSuperseded(clientId: string, generation: number): void {
    const floor = floorOf(clientId);
    if (floor === undefined || generation >= floor) return;
    throw new AuthError('superseded', { privateDetail: `generation ${generation} is below the floor ${floor}` });
  }

  function requireFresh(): void {
    if (!follower || freshness.state === 'fresh') {
      warned = false;
      return;
    }
    if (freshness.state === 'stale') follower.refresh();
    const detail = follower.lastError ?? 'no recent complete read';
    if (onStale === 'reject') {
      throw new AuthError('generations_unavailable', { privateDetail: detail, retryAfterSeconds });
    }
    if (warned) return;
    warned = true;
    logger.warn({ ...fields, detail, ageMs: freshness.ageMs }, 'generations are out of date, requests pass');
  }

  /** The token proves that the change behind its generation was committed. */
  function learnFrom(clientId: string, generation: number, nowMs: number): void {
    const moved = floors.raise(clientId, generation);
    // With a source, trimming goes with its reads: they can bring back what a wrong clock has dropped.
    if (moved && !follower) floors.trimWhenDue(nowMs);
  }

  return {
    admit(clientId, claims) {
      const nowMs = clock();
      const generation = readGeneration(claims, rule, nowMs);
      refuseSuperseded(clientId, generation);
      if (learn) learnFrom(clientId, generation, nowMs);
      requireFresh();
      return generation;
    },
    check(clientId, generation) {
      refuseSuperseded(clientId, generation);
      requireFresh();
    },
    settled: () => starting,
    ready: () => follower?.ready ?? Promise.resolve(),
    status: () => ({
      source: follower ? freshness.state : live ? 'fresh' : 'none',
      ...(freshness.ageMs !== undefined && { ageMs: freshness.ageMs }),
      floors: floors.size,
      ...(follower?.lastError !== undefined && { lastError: follower.lastError }),
      reads: follower?.reads ?? 0,
      failures: follower?.failures ?? 0,
    }),
    async close() {
      follower?.close();
      if (ownsSource) await source?.close?.();
    },
  };
}
