import { AuthError } from '../core/auth-error';
import type { Clock, Schedule } from '../core/clock';
import type { GenerationStatus } from '../core/gate-status';
import type { Logger } from '../core/logger';
import { Floors } from './floors';
import { Freshness, SourceSync } from './source-sync';
import { readGeneration } from './generation';
import type { GenerationRule } from './generation';
import { isLive } from './source';
import type { GenerationSource } from './source';

/** How the generations of one issuer's tokens are verified. */
export interface GenerationVerifierOptions {
  readonly issuer: string;
  readonly rule: GenerationRule;
  /** Whether tokens raise floors; `false` where the claim is `iat`, which says nothing about changes. */
  readonly learn: boolean;
  /** Where floors come from; without one they are learned from tokens only. */
  readonly source?: GenerationSource | undefined;
  /** Whether `close()` closes the source too: for a source that was made for this verifier. Default `false`. */
  readonly ownsSource?: boolean | undefined;
  /** Longest `exp - iat` that verification accepts, in ms: older floors are dropped. */
  readonly maxTokenAgeMs: number;
  /** Tolerance between clocks, in ms. */
  readonly skewMs: number;
  /** Age of the last complete read, in ms, past which `onStale` decides. */
  readonly maxStalenessMs: number;
  /** While the floors may be out of date: refuses with 503, or accepts with a warning in the log. */
  readonly onStale: 'reject' | 'accept';
  /** Longest pause between reads, in ms. Default 5000. */
  readonly pollMs?: number | undefined;
  /** Longest time for one read, in ms. Default 5000. */
  readonly readTimeoutMs?: number | undefined;
  /** How far each read overlaps the previous one, in ms. Default 60000. */
  readonly overlapMs?: number | undefined;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly logger: Logger;
  readonly random?: (() => number) | undefined;
}

/** The floors of one issuer, and whether they can be relied on. */
export interface GenerationVerifier {
  /**
   * Checks the generation of a token that has passed every other check, learns from it, and returns it.
   *
   * @throws AuthError `generation_missing`, `generation_invalid`, `superseded` or `generations_unavailable`.
   */
  verify(clientId: string, claims: Readonly<Record<string, unknown>>): number;
  /**
   * Checks the generation of a cached token again: floor and freshness only.
   *
   * @throws AuthError `superseded` or `generations_unavailable`.
   */
  recheck(clientId: string, generation: number): void;
  /** Resolves once the first read attempt has ended, successful or not; `undefined` from then on. */
  settled(): Promise<void> | undefined;
  /** Resolves after the first complete read; retries until then and never rejects. */
  ready(): Promise<void>;
  status(): GenerationStatus;
  close(): Promise<void>;
}

/** Makes the verifier of one issuer's generations, and starts to keep its floors in sync with the source. */
export function generationVerifier(options: GenerationVerifierOptions): GenerationVerifier {
  const { issuer, rule, learn, source, maxStalenessMs, onStale, clock, logger } = options;
  // Own properties only: a polluted prototype must not change how a source is read.
  const own = { __proto__: null, ...options } as GenerationVerifierOptions;
  const { pollMs = 5_000, readTimeoutMs = 5_000, overlapMs = 60_000, random = Math.random, ownsSource } = own;
  const fields = { issuer };
  const floors = new Floors(options);
  const freshness = new Freshness(maxStalenessMs, clock);
  const defaults = { pollMs, readTimeoutMs, overlapMs, random };
  const live = isLive(source) ? source : undefined;
  const sync =
    source && !live ? new SourceSync({ ...options, ...defaults, source, floors, freshness, fields }) : undefined;
  const retryAfterSeconds = Math.min(30, Math.max(1, Math.ceil(pollMs / 1000)));
  let starting: Promise<void> | undefined = sync?.start().finally(() => (starting = undefined));
  let warned = false;

  /** Returns the known floor, which holds even while the floors are stale. */
  function refuseSuperseded(clientId: string, generation: number): number | undefined {
    const known = floors.get(clientId);
    const current = live?.floorOf(clientId);
    const floor = current === undefined || (known !== undefined && known > current) ? known : current;
    if (floor === undefined || generation >= floor) return floor;
    throw new AuthError('superseded', { privateDetail: `generation ${generation} is below the floor ${floor}` });
  }

  function requireFresh(): void {
    if (!sync || freshness.state === 'fresh') {
      warned = false;
      return;
    }
    if (freshness.state === 'stale') sync.refresh();
    const detail = sync.lastError ?? 'no recent complete read';
    if (onStale === 'reject') {
      throw new AuthError('generations_unavailable', { privateDetail: detail, retryAfterSeconds });
    }
    if (warned) return;
    warned = true;
    logger.warn({ ...fields, detail, ageMs: freshness.ageMs }, 'generations are out of date, requests are accepted');
  }

  /** A token that passed every other check proves that the change of its generation was committed. */
  function learnFrom(clientId: string, generation: number, nowMs: number): void {
    const moved = floors.raise(clientId, generation);
    // With a source, floors are trimmed after its reads, which can restore what a wrong clock has dropped.
    if (moved && !sync) floors.trimWhenDue(nowMs);
  }

  return {
    verify(clientId, claims) {
      const nowMs = clock();
      const generation = readGeneration(claims, rule, nowMs);
      const floor = refuseSuperseded(clientId, generation);
      if (learn && generation !== floor) learnFrom(clientId, generation, nowMs);
      requireFresh();
      return generation;
    },
    recheck(clientId, generation) {
      refuseSuperseded(clientId, generation);
      requireFresh();
    },
    settled: () => starting,
    ready: () => sync?.ready ?? Promise.resolve(),
    status: () => ({
      source: sync ? freshness.state : live ? 'fresh' : 'none',
      ...(freshness.ageMs !== undefined && { ageMs: freshness.ageMs }),
      floors: floors.size,
      ...(sync?.lastError !== undefined && { lastError: sync.lastError }),
      reads: sync?.reads ?? 0,
      failures: sync?.failures ?? 0,
    }),
    async close() {
      sync?.close();
      if (ownsSource) await source?.close?.();
    },
  };
}
