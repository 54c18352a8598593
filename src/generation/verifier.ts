import { AuthError } from '../core/auth-error';
import type { GenerationStatus } from '../core/gate-status';
import { retryAfterSeconds } from '../core/outage';
import { Floors } from './floors';
import { Follower } from './follower';
import type { FollowerOptions } from './follower';
import { readGeneration } from './generation';
import type { GenerationRule } from './generation';
import type { GenerationSource } from './log';

/** How the generations of one issuer's tokens are verified. */
export interface GenerationVerifierOptions extends Omit<FollowerOptions, 'source' | 'floors'> {
  readonly rule: GenerationRule;
  /** Whether tokens raise floors; `false` where the claim is `iat`, which says nothing about changes. */
  readonly learn: boolean;
  /** Where floors come from; without one they are learned from tokens only. */
  readonly source: GenerationSource | undefined;
  /** Whether `close()` closes the source too: for a source that was made for this verifier. */
  readonly ownsSource: boolean;
  /** Longest `exp - iat` that verification accepts, in ms: older floors are dropped. */
  readonly maxTokenAgeMs: number;
  /** While the floors may be out of date: refuses with 503, or accepts with a warning in the log. */
  readonly onStale: 'reject' | 'accept';
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
  /** Resolves once it is known whether the floors are fresh; `undefined` from then on. */
  settled(): Promise<void> | undefined;
  /** Resolves when the floors are fresh for the first time; never rejects. */
  ready(): Promise<void>;
  status(): GenerationStatus;
  close(): Promise<void>;
}

/** Makes the verifier of one issuer's generations, and starts to keep its floors up to date with the source. */
export function generationVerifier(options: GenerationVerifierOptions): GenerationVerifier {
  const { issuer, rule, learn, source, ownsSource, onStale, pollMs, clock, logger } = options;
  const floors = new Floors(options);
  const follower = source && new Follower({ ...options, source, floors });
  follower?.start();
  let starting = follower?.settled.finally(() => (starting = undefined));
  let warned = false;

  /** Returns the known floor, which holds even while the floors are stale. */
  function refuseSuperseded(clientId: string, generation: number): number | undefined {
    const floor = floors.get(clientId);
    if (floor === undefined || generation >= floor) return floor;
    throw new AuthError('superseded', { privateDetail: `generation ${generation} is below the floor ${floor}` });
  }

  function requireFresh(): void {
    const state = follower?.state ?? 'fresh';
    if (state === 'fresh') {
      warned = false;
      return;
    }
    const detail = state === 'silent' ? SILENT : (follower?.lastError ?? 'no recent complete read');
    if (onStale === 'reject') {
      throw new AuthError('generations_unavailable', {
        privateDetail: detail,
        retryAfterSeconds: retryAfterSeconds(pollMs),
      });
    }
    if (warned) return;
    warned = true;
    const ages = { ageMs: follower?.ageMs, silentMs: follower?.silentMs };
    logger.warn({ issuer, detail, ...ages }, 'generations are out of date, requests are accepted');
  }

  return {
    verify(clientId, claims) {
      const nowMs = clock();
      const generation = readGeneration(claims, rule, nowMs);
      const floor = refuseSuperseded(clientId, generation);
      // A token that passed every other check proves that the change of its generation was committed.
      if (learn && generation !== floor) {
        floors.raise(clientId, generation);
        floors.turn(nowMs);
      }
      requireFresh();
      return generation;
    },
    recheck(clientId, generation) {
      refuseSuperseded(clientId, generation);
      requireFresh();
    },
    settled: () => starting,
    ready: () => follower?.ready ?? Promise.resolve(),
    status: () => ({
      source: follower?.state ?? 'none',
      ...(follower?.ageMs !== undefined && { ageMs: follower.ageMs }),
      ...(follower?.silentMs !== undefined && { silentMs: follower.silentMs }),
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

const SILENT = 'the publisher is not heard from: it is down, cut off from the log, or writes to another one';
