import type { Clock, Schedule, Timer } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { backOffMs } from '../../core/back-off';
import type { GenerationSource } from '../../generation/source';
import { describeFailure } from '../../generation/source-error';
import { Watcher } from '../../generation/watcher';
import { heldFloors, lackingFloors } from './lacking-floors';
import type { Publisher } from './publisher';
import type { Store } from '../storage/store';

/** Keeps a source complete: what it has lost is published again. */
export interface Reconciler {
  /** Publishes what the source lacks, and looks after it from now on; never rejects. */
  start(): Promise<void>;
  close(): void;
}

/** What is kept complete, and from what. */
export interface ReconcilerOptions {
  readonly source: GenerationSource;
  readonly store: Pick<Store, 'state'>;
  readonly publisher: Publisher;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly logger: Logger;
}

const EVERY_MS = 30_000;
const SELDOM_MS = 600_000;
/** A source that answers again may be empty, and a resource server that starts now would know no floor. */
const PAUSES = { firstMs: 1_000, longestMs: EVERY_MS };
/** The pause is so many times as long as the comparison was: a large source is not read all the time. */
const REST = 20;
/** A source that hangs must not hold up the start. */
const START_TIMEOUT_MS = 5_000;
const TIMEOUT_MS = 60_000;

/**
 * Makes the reconciler of one source: it compares what the source has with what the token server holds, at the start,
 * whenever the watch on the source stands again after a gap, and every 30 s.
 */
export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { source, publisher, clock, schedule, logger } = options;
  const watcher = new Watcher({
    ...options,
    source: withoutHints(source),
    wake: afterGap,
    fields: {},
    timeoutMs: START_TIMEOUT_MS,
    random: Math.random,
  });
  let timer: Timer | undefined;
  let failures = 0;
  let busy = false;
  let gap = false;
  let closed = false;

  /** Never rejects; answers whether the source could be read. */
  async function compare(timeoutMs: number, level: 'info' | 'warn'): Promise<boolean> {
    const startedMs = clock();
    busy = true;
    gap = false;
    try {
      const lacking = await lackingFloors(options, timeoutMs);
      succeeded(lacking.length, level);
      await publisher.publish(lacking);
    } catch (error) {
      failed(error);
    }
    busy = false;
    plan(Math.min(SELDOM_MS, Math.max(EVERY_MS, REST * (clock() - startedMs))));
    return failures === 0;
  }

  function succeeded(lacking: number, level: 'info' | 'warn'): void {
    if (closed) return;
    if (failures > 0) logger.info({ failures }, 'the source of generations can be compared again');
    failures = 0;
    if (lacking > 0) logger[level]({ floors: lacking }, 'the source lacks generations, they are published to it');
  }

  function failed(error: unknown): void {
    failures++;
    if (closed || failures > 1) return;
    logger.warn({ detail: describeFailure(error) }, 'the source of generations cannot be read to be compared');
  }

  function plan(pauseMs: number): void {
    timer?.cancel();
    if (closed) return;
    const delayMs = failures > 0 ? backOffMs(failures, PAUSES, Math.random) : pauseMs;
    timer = schedule(() => void compare(TIMEOUT_MS, 'warn'), gap ? PAUSES.firstMs : delayMs);
  }

  function afterGap(): void {
    gap = true;
    if (!busy) plan(PAUSES.firstMs);
  }

  return {
    async start() {
      const watching = watcher.start();
      const readable = await compare(START_TIMEOUT_MS, 'info');
      if (!readable) await publisher.publish(await heldFloors(options));
      await watching;
    },
    close() {
      closed = true;
      timer?.cancel();
      watcher.close();
    },
  };
}

/** Most hints are answers to what is published from here; what matters is the gap, in which a source may lose all. */
function withoutHints(source: GenerationSource): GenerationSource {
  return {
    read: (sinceMs) => source.read(sinceMs),
    ...(source.watch && {
      watch: async (_, lost) => (await source.watch?.(() => undefined, lost)) ?? (() => undefined),
    }),
  };
}
