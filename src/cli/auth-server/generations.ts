import { memoryGenerations, type Change, type GenerationSource } from 'tillgate/generations';
import { logHandler } from 'tillgate/internal';
import type { AuthServerSettings } from './options';
import type { Store } from './store';

/** The log of one token server. */
export interface Generations {
  /** It is complete: a change is in it before its response is sent. */
  readonly source: GenerationSource;
  readonly handler: ReturnType<typeof logHandler>;
  /** Takes a change that is on disk. Resolves with whether the log has it; `false`: its generation lies in the future. */
  publish(change: Change): Promise<boolean>;
  close(): void;
}

/** A log takes no generation that is further ahead; its tokens are refused until then. */
const MAX_AHEAD_MS = 60_000;
/** A clock that stepped back may be right again at any time: how often what is pending is compared with it. */
const LOOK_AGAIN_MS = 1_000;
/** A change that lies further ahead does not keep the mark from calling the log complete. */
const AWAITED_MS = 3_600_000;

/** Begins the log with what is stored. */
export async function openGenerations(settings: AuthServerSettings, store: Store): Promise<Generations> {
  const { maxTokenAgeSeconds, clock, schedule, logger } = settings;
  const log = memoryGenerations({ maxTokenAgeSeconds, clock, schedule });
  /** What the log cannot take yet. */
  const later = new Set<Change>();
  let timer: ReturnType<typeof schedule> | undefined;

  async function publish(change: Change): Promise<boolean> {
    const aheadMs = change[1] - clock();
    if (aheadMs > MAX_AHEAD_MS) {
      logger.warn({ aheadMs }, 'the clock has stepped back: a change is published when its time has come');
      later.add(change);
      timer ??= schedule(publishLater, LOOK_AGAIN_MS);
      return false;
    }
    await log.append([change]);
    return true;
  }

  function publishLater(): void {
    timer = later.size > 0 ? schedule(publishLater, LOOK_AGAIN_MS) : undefined;
    for (const change of later) {
      if (change[1] - clock() > MAX_AHEAD_MS) continue;
      log.append([change]).then(
        () => later.delete(change),
        () => undefined, // The clock has stepped back again: the next look tries once more.
      );
    }
  }

  /** The time of the mark; 0 while the log lacks a change that the next hour brings, or that another process has made. */
  function completeMs(): number {
    const nowMs = clock();
    return store.isStopped || [...later].some(([, generation]) => generation <= nowMs + AWAITED_MS) ? 0 : nowMs;
  }

  // All of them, those of deleted clients and old ones too: the clock can be days ahead at this moment.
  for (const { clientId, generation } of store.state.clients.values()) await publish([clientId, generation]);
  const handler = logHandler({ log, schedule, clock: completeMs });
  return {
    source: { mark: log.mark, reader: () => log.reader() },
    handler,
    publish,
    close() {
      timer?.cancel();
      // Not the log: a gate of this process may still serve its last requests.
      handler.close();
    },
  };
}
