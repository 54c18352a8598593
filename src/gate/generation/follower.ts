import { LRUCache } from 'lru-cache';
import { called } from '../core/callbacks';
import { timeHint } from '../core/clock';
import { AuthError } from '../core/errors';
import { ActivityPublisher } from '../core/activity-channels';
import type { GenerationStatus } from '../core/gate-status';
import { escapeUnsafe } from '../core/logger';
import { NO_OPTIONS } from '../core/objects';
import { retryAfterSeconds } from '../core/outage';
import { Floors, SLOW } from './floors';
import type * as FollowLog from './follow-log';
import type { FollowerOptions } from './follow-log';
import { FIRST_TIME_MS, isStamped, readGeneration } from './generation';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- loaded by gates that have a source
const following = () => require('./follow-log') as typeof FollowLog;

/** Of a token that was issued after the change. */
const DIFFERENT_NUMBERS =
  ', and iat is later than the floor: issuer and publisher use different numbers; the publisher must publish the number that the issuer stamps';

/** How long a client counts as out after its last superseded token, in ms. */
const OUT_MS = 300_000;
/** A caller that fetches a new token after the first refusal sends no superseded one this much later, in ms. */
const RECOVERY_MS = 60_000;

/** The floors of one issuer, kept up to date with the source, and whether they can be relied on. */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #floors: Floors;
  readonly #log: FollowLog.FollowedLog | undefined;
  readonly #activity: ActivityPublisher<'generations'>;
  /** Refused requests with superseded tokens, by client; of more than 1,000 clients, of those that came last. */
  readonly #superseded = new LRUCache<string, { sinceMs: number; lastMs: number; count: number }>({ max: 1_000 });
  #settled: Promise<void> | undefined;
  #warned = false;
  /** Whether a token was accepted by a stamped number, and one by its time of issue. */
  #acceptedStamp = false;
  #acceptedTime = false;

  constructor(options: FollowerOptions) {
    const { source } = options;
    this.#options = options;
    this.#floors = new Floors(options);
    this.#floors.onCounter = () => this.#reportCounter();
    this.#activity = new ActivityPublisher('generations', options.issuer, () => this.status());
    this.#log = source && new (following().FollowedLog)({ ...options, source }, this.#floors, this.#activity);
    this.#settled = this.#log?.settled.finally(() => (this.#settled = undefined));
    this.#activity.publish('opened');
  }

  /**
   * Checks the generation of a token that has passed every other check, learns from it, and returns it.
   *
   * @throws AuthError `generation_missing`, `generation_invalid`, `superseded` or `generations_unavailable`.
   */
  verify(clientId: string, claims: Readonly<Record<string, unknown>>): number {
    const { rule, clock } = this.#options;
    const nowMs = clock();
    const generation = readGeneration(claims, rule, nowMs);
    const stamped = isStamped(claims, rule);
    const floor = this.#refuseSuperseded(clientId, generation, stamped, claims['iat']);
    // A token that passed every other check proves that the change of its generation was committed; an issue time proves nothing.
    if (stamped && generation !== floor) {
      this.#floors.raise(clientId, generation);
      this.#floors.turn(nowMs);
    }
    this.#requireFresh(clientId, generation);
    if (stamped) this.#acceptedStamp = true;
    else if (!this.#acceptedTime) this.#noteTime();
    return generation;
  }

  /** Whether a token is compared by a stamped number; its rechecks have to say so again. */
  isStamped(claims: object): boolean {
    return isStamped(claims, this.#options.rule);
  }

  /**
   * Checks the generation of a cached token again: floor and freshness only.
   *
   * @throws AuthError `superseded`, `generation_missing` or `generations_unavailable`.
   */
  recheck(clientId: string, generation: number, stamped = true): void {
    this.#refuseSuperseded(clientId, generation, stamped);
    this.#requireFresh(clientId, generation);
  }

  /** Counts a request that was refused as `superseded`; logs once for each client that it has not recovered. */
  noteSuperseded(clientId: string): void {
    const { issuer, clock, logger } = this.#options;
    const nowMs = clock();
    const known = this.#superseded.get(clientId, NO_OPTIONS);
    const isOut = known !== undefined && nowMs - known.lastMs < OUT_MS;
    const { sinceMs, lastMs, count } = isOut ? known : { sinceMs: nowMs, lastMs: nowMs, count: 0 };
    this.#superseded.set(clientId, { sinceMs, lastMs: nowMs, count: count + 1 }, NO_OPTIONS);
    if (nowMs - sinceMs < RECOVERY_MS || lastMs - sinceMs >= RECOVERY_MS) return;
    const fields = { clientId: escapeUnsafe(clientId), count: count + 1, since: new Date(sinceMs).toISOString() };
    logger.warn({ issuer, ...fields }, NOT_RECOVERED);
  }

  /** Calls `listener` with the client whose floor has risen. */
  onFloor(listener: (clientId: string) => void): void {
    this.#floors.onRaise = listener;
  }

  /** Resolves once it is known whether the floors are fresh; `undefined` from then on. */
  settled(): Promise<void> | undefined {
    return this.#settled;
  }

  /** Resolves when the floors are fresh for the first time; never rejects. */
  ready(): Promise<void> {
    return this.#log?.ready ?? Promise.resolve();
  }

  status(): GenerationStatus {
    const followed = this.#log?.status() ?? { reads: 0, failures: 0 };
    const { claim, elseIat } = this.#options.rule;
    const isLearned = this.#acceptedStamp || (claim !== 'iat' && !elseIat);
    const out = [...this.#superseded.values()].filter(({ lastMs }) => this.#options.clock() - lastMs < OUT_MS).length;
    return {
      source: this.#log?.state() ?? 'none',
      changes: this.#log ? 'source' : isLearned ? 'tokens' : 'not at all',
      floors: this.#floors.size,
      ...(out > 0 && { supersededClients: out }),
      ...(this.#acceptedTime && this.#floors.hasCounter && { problem: COUNTER }),
      ...followed,
    };
  }

  /** The first token that is accepted by its time of issue. */
  #noteTime(): void {
    const { issuer, source, rule, logger } = this.#options;
    this.#acceptedTime = true;
    if (!source && rule.elseIat) logger.warn({ issuer }, UNNOTICED);
    if (this.#floors.hasCounter) this.#reportCounter();
  }

  #reportCounter(): void {
    const { issuer, logger } = this.#options;
    if (this.#acceptedTime) logger.error({ issuer }, COUNTER);
  }

  async close(): Promise<void> {
    const { source, ownsSource } = this.#options;
    this.#activity.publish('closed');
    this.#log?.close();
    if (ownsSource) await called(() => source?.close?.());
  }

  /** Returns the known floor, which holds even while the floors are stale. */
  #refuseSuperseded(clientId: string, generation: number, stamped: boolean, issuedAt?: unknown): number | undefined {
    if (this.#floors.pending.size > 0) this.#floors.raiseDue(clientId, this.#options.clock());
    const floor = this.#floors.get(clientId);
    if (floor !== undefined && floor < FIRST_TIME_MS && !stamped) {
      const privateDetail = `the floor ${floor} is not a time in ms: ${NAME_CLAIM}`;
      throw new AuthError('generation_missing', { privateDetail });
    }
    if (floor === undefined || generation >= floor) return floor;
    const isTime = stamped && generation >= FIRST_TIME_MS && typeof issuedAt === 'number' && issuedAt * 1000 > floor;
    const hint = isTime ? DIFFERENT_NUMBERS : '';
    throw new AuthError('superseded', { privateDetail: `generation ${generation} is below the floor ${floor}${hint}` });
  }

  /** Also where this client has changed, and the time of the change has not come: the log may hold no older floor of it. */
  #requireFresh(clientId: string, generation: number): void {
    const state = this.#log?.state() ?? 'fresh';
    const { clock, issuer, onStale, pollMs, logger } = this.#options;
    const { pending } = this.#floors;
    const isPending = pending.size > 0 && this.#floors.isBelowPending(clientId, generation, clock());
    if (state === 'fresh' && !isPending) {
      if (pending.size === 0) this.#warned = false;
      return;
    }
    const { lastError = `no recent complete read${timeHint()}`, ageMs, silentMs } = this.#log?.status() ?? {};
    const late = state === 'silent' && lastError !== SLOW ? SILENT : lastError;
    const detail = isPending ? PENDING : late;
    if (onStale === 'reject') {
      const refusal = { privateDetail: detail, retryAfterSeconds: retryAfterSeconds(pollMs) };
      throw new AuthError('generations_unavailable', refusal);
    }
    if (this.#warned) return;
    this.#warned = true;
    logger.warn({ issuer, detail, ageMs, silentMs }, 'generations are out of date, requests are accepted');
  }
}

const NAME_CLAIM =
  'iat cannot be compared with it, name the claim that holds this number with generationClaim (TILLGATE_GENERATION_CLAIM)';
const COUNTER = `a floor is not a time in ms, and tokens of this issuer are accepted by iat: ${NAME_CLAIM}`;
const UNNOTICED =
  'a token was accepted by its iat, and there is no generationSource: a change of a credential is not noticed, tokens are ' +
  'accepted until they expire: docs/generations.md, "Issuers that stamp no generation"';

const NOT_RECOVERED =
  'a caller still sends a token from before the change of its credential: it has not fetched a new one, see docs/callers.md';

const PENDING =
  'the client has a floor of the future: this clock is slow, or that of the publisher was ahead when the client changed';

const SILENT = 'the publisher is not heard from: it is down, cut off from the log, or writes to another one';
