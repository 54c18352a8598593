import type { Clock } from '../core/clock';
import { AuthError } from '../core/errors';
import { silentLogger, type Logger } from '../core/logger';
import type { GateStatus } from '../core/gate-status';

/** Remembers the proofs that were used, so that none is accepted twice (RFC 9449 section 11.1). */
export interface ReplayStore {
  /**
   * Remembers a proof.
   *
   * @param id - names the proof: the hash of its key and its `jti`
   * @param untilMs - first moment, in ms since the epoch, at which no process of the API accepts the proof any more,
   *   even if the store has forgotten it: differences between their clocks are included
   * @param client - names issuer and client of the token, so that no client uses up the room of others, however many keys
   *   it has
   * @returns whether it is new. Rejects, or throws, when that cannot be known: the request gets 503; with an `AuthError`
   *   of the reason `too_many_proofs` when the client has used its share: 429.
   */
  remember(id: string, untilMs: number, client: string): boolean | Promise<boolean>;
}

/** What one process remembers at most: some 50 MB. */
const MAX_PROOFS = 500_000;

/** Of a store that is half full: 64 clients that hold all they may leave room for a 65th. */
const SHARES = 128;
const REMIND_EVERY_MS = 60_000;
const HALF_FULL =
  'the replay store in memory is half full: a client that holds 1/128 of it gets 429 until proofs end; redisReplayStore() has room for each client';

/** A store whose state is part of that of its gate. */
export type MemoryReplayStore = ReplayStore & { status(): NonNullable<GateStatus['usedProofs']> };

/**
 * Makes a store in memory, for an API that is one process. A full store refuses new proofs rather than forgetting old
 * ones, which could then be used again. While it is less than half full, any client may add a proof: one alone fills half of it.
 * From then on a client adds only while it holds less than 1/128 of the store, so 64 clients that send all they may leave room
 * for a 65th. A proof is kept for 90 s by default: that is 2,777 requests per second of one client alone, and 43 per second of
 * each client where the store is half full.
 */
export function memoryReplayStore(
  clock: Clock,
  maxProofs = MAX_PROOFS,
  logger: Logger = silentLogger,
): MemoryReplayStore {
  const share = Math.max(1, Math.floor(maxProofs / SHARES));
  const held = new Map<string, number>();
  let warnedMs = -Infinity;
  /** In the order of their use, which is nearly that of their end. */
  const proofs = new Map<string, { readonly untilMs: number; readonly client: string }>();
  /** Proofs up to this end may have been forgotten: after a clock stepped back they are not known to be new. */
  let forgottenUntilMs = -Infinity;

  function forgetEnded(): void {
    const nowMs = clock();
    for (const [id, { untilMs, client }] of proofs) {
      if (untilMs > nowMs) return;
      proofs.delete(id);
      hold(client, -1);
      forgottenUntilMs = Math.max(forgottenUntilMs, untilMs);
    }
  }

  function hold(client: string, count: number): void {
    const left = (held.get(client) ?? 0) + count;
    if (left > 0) held.set(client, left);
    else held.delete(client);
  }

  const isHalfFull = (): boolean => proofs.size >= maxProofs / 2;

  function hasRoom(client: string): boolean {
    return !isHalfFull() || (proofs.size < maxProofs && (held.get(client) ?? 0) < share);
  }

  function warn(): void {
    // A clock that has stepped back warns again.
    if (!isHalfFull() || Math.abs(clock() - warnedMs) < REMIND_EVERY_MS) return;
    warnedMs = clock();
    logger.warn({ proofs: proofs.size, maxProofs }, HALF_FULL);
  }

  return {
    remember(id, untilMs, client) {
      forgetEnded();
      if (untilMs <= forgottenUntilMs || proofs.has(id)) return false;
      if (!hasRoom(client)) throw new AuthError('too_many_proofs');
      hold(client, 1);
      proofs.set(id, { untilMs, client });
      warn();
      return true;
    },
    status() {
      forgetEnded();
      return { proofs: proofs.size, maxProofs, ...(isHalfFull() && { warning: HALF_FULL }) };
    },
  };
}
