import { AuthError } from '../core/errors';
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

/** The floors of one issuer, kept up to date with the source, and whether they can be relied on. */
export class GenerationVerifier {
  readonly #options: GenerationVerifierOptions;
  readonly #floors: Floors;
  readonly #follower: Follower | undefined;
  #settled: Promise<void> | undefined;
  #warned = false;

  constructor(options: GenerationVerifierOptions) {
    const { source } = options;
    this.#options = options;
    this.#floors = new Floors(options);
    this.#follower = source && new Follower({ ...options, source, floors: this.#floors });
    this.#follower?.start();
    this.#settled = this.#follower?.settled.finally(() => (this.#settled = undefined));
  }

  /**
   * Checks the generation of a token that has passed every other check, learns from it, and returns it.
   *
   * @throws AuthError `generation_missing`, `generation_invalid`, `superseded` or `generations_unavailable`.
   */
  verify(clientId: string, claims: Readonly<Record<string, unknown>>): number {
    const { rule, learn, clock } = this.#options;
    const nowMs = clock();
    const generation = readGeneration(claims, rule, nowMs);
    const floor = this.#refuseSuperseded(clientId, generation);
    // A token that passed every other check proves that the change of its generation was committed.
    if (learn && generation !== floor) {
      this.#floors.raise(clientId, generation);
      this.#floors.turn(nowMs);
    }
    this.#requireFresh();
    return generation;
  }

  /**
   * Checks the generation of a cached token again: floor and freshness only.
   *
   * @throws AuthError `superseded` or `generations_unavailable`.
   */
  recheck(clientId: string, generation: number): void {
    this.#refuseSuperseded(clientId, generation);
    this.#requireFresh();
  }

  /** Resolves once it is known whether the floors are fresh; `undefined` from then on. */
  settled(): Promise<void> | undefined {
    return this.#settled;
  }

  /** Resolves when the floors are fresh for the first time; never rejects. */
  ready(): Promise<void> {
    return this.#follower?.ready ?? Promise.resolve();
  }

  status(): GenerationStatus {
    const { state = 'none', ageMs, silentMs, lastError, reads = 0, failures = 0 } = this.#follower ?? {};
    return {
      source: state,
      ...(ageMs !== undefined && { ageMs }),
      ...(silentMs !== undefined && { silentMs }),
      floors: this.#floors.size,
      ...(lastError !== undefined && { lastError }),
      reads,
      failures,
    };
  }

  async close(): Promise<void> {
    const { source, ownsSource } = this.#options;
    this.#follower?.close();
    if (ownsSource) await source?.close?.();
  }

  /** Returns the known floor, which holds even while the floors are stale. */
  #refuseSuperseded(clientId: string, generation: number): number | undefined {
    const floor = this.#floors.get(clientId);
    if (floor === undefined || generation >= floor) return floor;
    throw new AuthError('superseded', { privateDetail: `generation ${generation} is below the floor ${floor}` });
  }

  #requireFresh(): void {
    const follower = this.#follower;
    if (follower === undefined || follower.state === 'fresh') {
      this.#warned = false;
      return;
    }
    const { issuer, onStale, pollMs, logger } = this.#options;
    const { state, lastError = 'no recent complete read', ageMs, silentMs } = follower;
    const detail = state === 'silent' ? SILENT : lastError;
    if (onStale === 'reject') {
      const refusal = { privateDetail: detail, retryAfterSeconds: retryAfterSeconds(pollMs) };
      throw new AuthError('generations_unavailable', refusal);
    }
    if (this.#warned) return;
    this.#warned = true;
    logger.warn({ issuer, detail, ageMs, silentMs }, 'generations are out of date, requests are accepted');
  }
}

const SILENT = 'the publisher is not heard from: it is down, cut off from the log, or writes to another one';
