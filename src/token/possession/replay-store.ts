import { systemClock } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { readOptions } from '../../core/options';

/** Remembers the proofs that were used, so that none is accepted twice (RFC 9449 section 11.1). */
export interface ReplayStore {
  /**
   * Remembers a proof.
   *
   * @param id - names the proof: the hash of its key and its `jti`
   * @param untilMs - first moment at which the proof is refused without being remembered, in ms since the epoch
   * @returns whether it is new. Rejects, or throws, when that cannot be known: the request gets 503.
   */
  remember(id: string, untilMs: number): boolean | Promise<boolean>;
}

/** What one process remembers at most: some 50 MB. */
const MAX_PROOFS = 500_000;

/**
 * Makes a store in memory, for an API that is one process. A full store refuses new proofs rather than forgetting old
 * ones, which could then be used again.
 *
 * @throws TypeError when an option is wrong
 */
export function memoryReplayStore(
  options: {
    /** Number of proofs at most. Default 500000. */
    readonly maxProofs?: number | undefined;
  } & Pick<Dependencies, 'clock'> = {},
): ReplayStore {
  const read = readOptions('memoryReplayStore', options, ['maxProofs', 'clock']);
  const maxProofs = read.number('maxProofs', MAX_PROOFS, { unit: 'proofs', min: 1, integer: true });
  const clock = read.callable('clock', options.clock ?? systemClock);
  /** In the order of their use, which is nearly that of their end. */
  const untilMsById = new Map<string, number>();
  /** Proofs up to this end may have been forgotten: after a clock stepped back they are not known to be new. */
  let forgottenUntilMs = -Infinity;

  function forgetEnded(): void {
    const nowMs = clock();
    for (const [id, untilMs] of untilMsById) {
      if (untilMs > nowMs) return;
      untilMsById.delete(id);
      forgottenUntilMs = Math.max(forgottenUntilMs, untilMs);
    }
  }

  return {
    remember(id, untilMs) {
      forgetEnded();
      if (untilMs <= forgottenUntilMs || untilMsById.has(id)) return false;
      if (untilMsById.size >= maxProofs) throw new Error(`the replay store is full: ${maxProofs} proofs`);
      untilMsById.set(id, untilMs);
      return true;
    },
  };
}
