import { memoryGenerations } from 'tillgate/generations';
import type { Change, GenerationSource } from 'tillgate/generations';
import { logHandler } from 'tillgate/internal';
import type { Timer } from 'tillgate/internal';
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

/** Begins the log with what is stored. */
export async function openGenerations(settings: AuthServerSettings, store: Store): Promise<Generations> {
  const { maxTokenAgeSeconds, clock, schedule, logger } = settings;
  const log = memoryGenerations({ maxTokenAgeSeconds, clock, schedule });
  const timers = new Set<Timer>();

  async function publish(change: Change): Promise<boolean> {
    const aheadMs = change[1] - clock();
    if (aheadMs > MAX_AHEAD_MS) return publishLater(change, aheadMs);
    await log.append([change]);
    return true;
  }

  function publishLater(change: Change, aheadMs: number): false {
    logger.warn({ aheadMs }, 'the clock has stepped back: a change is published when its time has come');
    const timer = schedule(() => {
      timers.delete(timer);
      void publish(change);
    }, aheadMs);
    timers.add(timer);
    return false;
  }

  // Deleted clients too. A generation is not before the time of its change.
  for (const { clientId, generation } of store.state.clients.values()) {
    if (generation >= clock() - log.keptMs) await publish([clientId, generation]);
  }
  const handler = logHandler({ log, schedule, clock });
  return {
    source: { mark: log.mark, reader: () => log.reader() },
    handler,
    publish,
    close() {
      for (const timer of timers) timer.cancel();
      // Not the log: a gate of this process may still serve its last requests.
      handler.close();
    },
  };
}
