import type { Schedule, Timer } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { withTimeLimit } from '../../core/clock';
import type { Floor, GenerationSource } from '../../generation/source';
import { describeFailure, noResponse } from '../../generation/source-error';
import type { Store } from '../storage/store';
import { collectFloorsSince } from './floors';
import type { Publisher } from './publisher';

/** Keeps a source complete: floors that it has lost are published again. */
export interface SentinelKeeper {
  /** Publishes what the source lacks, and checks it every second from now on; never rejects. */
  start(): Promise<void>;
  close(): void;
}

/** What is kept complete, and from what. */
export interface SentinelKeeperOptions {
  readonly source: GenerationSource;
  readonly store: Pick<Store, 'state' | 'nowMs'>;
  readonly publisher: Publisher;
  readonly schedule: Schedule;
  readonly logger: Logger;
}

const EVERY_MS = 1_000;
const TIMEOUT_MS = 2_000;
/** A clock that stepped back lets the sentinel run ahead of the revisions, by 1 ms per second. */
const MARGIN_MS = 60_000;

/**
 * Makes the keeper of a source's sentinel (see `GenerationSentinel`). A source without one cannot lose floors: it gets
 * all of them at the start, and is not checked.
 */
export function sentinelKeeper({ source, store, publisher, schedule, logger }: SentinelKeeperOptions): SentinelKeeper {
  const { sentinel } = source;
  /** The sentinel written last; `undefined` until the source was complete once since the start. */
  let last: number | undefined;
  let isRepairing = false;
  let isFailing = false;
  let timer: Timer | undefined;
  let closed = false;

  async function check(): Promise<void> {
    try {
      const found = await within(async () => sentinel?.read());
      const since = firstMissing(found);
      if (since === undefined) await publisher.retry();
      else await publishSince(since);
      if (!publisher.isPending() && !closed) await raise(found);
      if (isFailing) logger.info({}, 'the source of generations can be reached again');
      isFailing = false;
    } catch (error) {
      if (!isFailing && !closed) {
        logger.warn({ detail: describeFailure(error) }, 'the source of generations cannot be reached, it is retried');
      }
      isFailing = true;
    }
    if (!closed) timer = schedule(() => void check(), EVERY_MS);
  }

  /** The revision from which the source may lack floors; `undefined` when it is complete. */
  function firstMissing(found: number | undefined): number | undefined {
    if (found === undefined || (last === undefined && found > store.nowMs())) return 0;
    return last === undefined || found < last ? found - MARGIN_MS : undefined;
  }

  async function publishSince(revision: number): Promise<void> {
    const floors = await floorsSince(revision);
    if (last !== undefined && !isRepairing) {
      logger.warn({ floors: floors.length }, 'the source has lost generations, they are published again');
    }
    isRepairing = true;
    await publisher.publish(floors);
  }

  /** Not beyond the revision of a change that is being written: its floor is not published yet. */
  async function raise(found = 0): Promise<void> {
    const next = Math.max(found + 1, (last ?? 0) + 1, store.nowMs());
    await within(async () => sentinel?.write(next));
    last = next;
    isRepairing = false;
  }

  function within<Value>(call: () => Promise<Value>): Promise<Value> {
    return withTimeLimit(call(), TIMEOUT_MS, schedule, noResponse);
  }

  async function floorsSince(revision: number): Promise<Floor[]> {
    const moved = await collectFloorsSince(store.state, revision);
    return moved.map(({ clientId, generation }) => [clientId, generation]);
  }

  return {
    async start() {
      if (sentinel) await check();
      else await publisher.publish(await floorsSince(0));
    },
    close() {
      closed = true;
      timer?.cancel();
    },
  };
}
