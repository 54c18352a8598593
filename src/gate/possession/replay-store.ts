import { AuthError } from '../core/errors';
import type { Dependencies } from '../core/options';
import { dependencies, option, readOptions } from '../core/options';
import { Places } from '../token/fair-queue';

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

/**
 * Makes a store in memory, for an API that is one process. A full store refuses new proofs rather than forgetting old
 * ones, which could then be used again. One client holds at most as many proofs as there is room left: alone half of the
 * store, two clients a third each. So no number of busy clients leaves a further one without room.
 *
 * @throws TypeError when an option is wrong
 */
export function memoryReplayStore(
  options: {
    /** Number of proofs at most. Default 500000. */
    readonly maxProofs?: number | undefined;
  } & Pick<Dependencies, 'clock'> = {},
): ReplayStore {
  const { maxProofs, clock } = readOptions('memoryReplayStore', options, {
    maxProofs: option.number({ unit: 'proofs', min: 1, integer: true }, MAX_PROOFS),
    ...dependencies('clock'),
  });
  const places = new Places(maxProofs);
  /** In the order of their use, which is nearly that of their end. */
  const proofs = new Map<string, { readonly untilMs: number; readonly client: string }>();
  /** Proofs up to this end may have been forgotten: after a clock stepped back they are not known to be new. */
  let forgottenUntilMs = -Infinity;

  function forgetEnded(): void {
    const nowMs = clock();
    for (const [id, { untilMs, client }] of proofs) {
      if (untilMs > nowMs) return;
      proofs.delete(id);
      places.take(client, -1);
      forgottenUntilMs = Math.max(forgottenUntilMs, untilMs);
    }
  }

  return {
    remember(id, untilMs, client) {
      forgetEnded();
      if (untilMs <= forgottenUntilMs || proofs.has(id)) return false;
      if (!places.hasRoom(client)) throw new AuthError('too_many_proofs');
      places.take(client);
      proofs.set(id, { untilMs, client });
      return true;
    },
  };
}
