import { withTimeLimit } from '../../core/clock';
import type { Timer } from '../../core/clock';
import type { GenerationSentinel } from '../../generation/source';
import { describeFailure, noResponse } from '../../generation/source-error';
import type { AuthServerSettings } from '../options';
import { movedSince } from '../storage/state';
import type { Store } from '../storage/store';
import type { Publisher } from './publisher';

const EVERY_MS = 1_000;
const TIMEOUT_MS = 2_000;
/** A clock that stepped back lets the sentinel run ahead of the revisions, by 1 ms per second. */
const MARGIN_MS = 60_000;

/**
 * Publishes what the source lacks, and from now on checks its sentinel every second (see `GenerationSentinel`): floors
 * that it has lost are published again. A source without a sentinel cannot lose floors: it gets all of them now, and is
 * not checked. Never rejects.
 *
 * @returns what ends the checks
 */
export async function keepSentinel(
  { generationSource, schedule, logger }: AuthServerSettings,
  store: Store,
  publisher: Publisher,
): Promise<() => void> {
  const sentinel = generationSource?.sentinel;
  /** The sentinel written last; `undefined` until the source was complete once since the start. */
  let last: number | undefined;
  let isRepairing = false;
  let isFailing = false;
  let timer: Timer | undefined;
  let closed = false;

  async function check(sentinel: GenerationSentinel): Promise<void> {
    try {
      const found = await withTimeLimit(sentinel.read(), TIMEOUT_MS, schedule, noResponse);
      const since = firstMissing(found);
      await (since === undefined ? publisher.retry() : repair(since));
      if (!publisher.isPending() && !closed) {
        // Not beyond the revision of a change that is being written: its floor is not published yet.
        const next = Math.max((found ?? 0) + 1, (last ?? 0) + 1, store.nowMs());
        await withTimeLimit(sentinel.write(next), TIMEOUT_MS, schedule, noResponse);
        last = next;
        isRepairing = false;
      }
      if (isFailing) logger.info({}, 'the source of generations can be reached again');
      isFailing = false;
    } catch (error) {
      if (!isFailing && !closed) {
        logger.warn({ detail: describeFailure(error) }, 'the source of generations cannot be reached, it is retried');
      }
      isFailing = true;
    }
    if (!closed) timer = schedule(() => void check(sentinel), EVERY_MS);
  }

  /** The revision from which the source may lack floors; `undefined` when it is complete. */
  function firstMissing(found: number | undefined): number | undefined {
    if (found === undefined || (last === undefined && found > store.nowMs())) return 0;
    return last === undefined || found < last ? found - MARGIN_MS : undefined;
  }

  async function repair(since: number): Promise<void> {
    const floors = await movedSince(store.state, since);
    if (last !== undefined && !isRepairing) {
      logger.warn({ floors: floors.length }, 'the source has lost generations, they are published again');
    }
    isRepairing = true;
    await publisher.publish(floors.map(({ clientId, generation }) => [clientId, generation]));
  }

  await (sentinel ? check(sentinel) : repair(0));
  return () => {
    closed = true;
    timer?.cancel();
  };
}
