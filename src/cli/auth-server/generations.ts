import { memoryGenerations } from 'tillgate/generations';
import type { Change, GenerationSource } from 'tillgate/generations';
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
/** A change that lies further ahead does not keep the mark from calling the log complete. */
const AWAITED_MS = 3_600_000;

/** Begins the log with what is stored. */
export async function openGenerations(settings: AuthServerSettings, store: Store): Promise<Generations> {
  const { maxTokenAgeSeconds, clock, schedule, logger } = settings;
  const log = memoryGenerations({ maxTokenAgeSeconds, clock, schedule });
  /** What the log cannot take yet. */
  const later = new Map<Change, ReturnType<typeof schedule>>();

  async function publish(change: Change): Promise<boolean> {
    const aheadMs = change[1] - clock();
    if (aheadMs > MAX_AHEAD_MS) return publishLater(change, aheadMs);
    await log.append([change]);
    return true;
  }

  function publishLater(change: Change, aheadMs: number): false {
    logger.warn({ aheadMs }, 'the clock has stepped back: a change is published when its time has come');
    const timer = schedule(() => {
      later.delete(change);
      void publish(change);
    }, aheadMs);
    later.set(change, timer);
    return false;
  }

  /** The time of the mark; 0 while the log lacks a change that the next hour brings, or that another process has made. */
  function completeMs(): number {
    const nowMs = clock();
    return store.isStopped || [...later.keys()].some(([, generation]) => generation <= nowMs + AWAITED_MS) ? 0 : nowMs;
  }

  // All of them, those of deleted clients and old ones too: the clock can be days ahead at this moment.
  for (const { clientId, generation } of store.state.clients.values()) await publish([clientId, generation]);
  const handler = logHandler({ log, schedule, clock: completeMs });
  return {
    source: { mark: log.mark, reader: () => log.reader() },
    handler,
    publish,
    close() {
      for (const timer of later.values()) timer.cancel();
      // Not the log: a gate of this process may still serve its last requests.
      handler.close();
    },
  };
}
