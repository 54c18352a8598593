import { setImmediate as turn } from 'node:timers/promises';
import { memoryGenerations, startPublisher } from 'tillgate/generations';
import type { Change, GenerationSource, Publisher } from 'tillgate/generations';
import { logHandler } from 'tillgate/internal';
import type { Timer } from 'tillgate/internal';
import type { AuthServerSettings } from './options';
import type { Store } from './store';

/** Where the changes of one token server go: into its own log, and into the generation source if there is one. */
export interface Generations {
  /** Reads the own log. It is complete: a change is in it before its response is sent. */
  readonly source: GenerationSource;
  /** Serves the own log. */
  readonly handler: ReturnType<typeof logHandler>;
  /** Takes a change that is on disk. Resolves with whether the generation source has it; without one, it is published. */
  publish(change: Change): Promise<boolean>;
  close(): void;
}

/** Rows that are looked at in one go: about 5 ms of work. */
const SLICE = 20_000;
/** A log takes no generation that is further ahead; its tokens are refused until then. */
const MAX_AHEAD_MS = 60_000;

/** Begins the own log with what is stored, and brings the generation source up to date. */
export async function openGenerations(settings: AuthServerSettings, store: Store): Promise<Generations> {
  const { generationSource, maxTokenAgeSeconds, clock, schedule, logger } = settings;
  const log = memoryGenerations({ maxTokenAgeSeconds, clock, schedule });
  const timers = new Set<Timer>();
  let publisher: Publisher | undefined;

  /** Deleted clients too. Other requests are served in between. */
  async function* changes(): AsyncGenerator<Change, void, undefined> {
    let count = 0;
    for (const { clientId, generation } of store.state.clients.values()) {
      // A generation is not before the time of its change.
      if (generation >= clock() - log.keptMs) yield [clientId, generation];
      if (++count % SLICE === 0) await turn();
    }
  }

  async function publish(change: Change): Promise<boolean> {
    const aheadMs = change[1] - clock();
    if (aheadMs > MAX_AHEAD_MS) return publishLater(change, aheadMs);
    await log.append([change]);
    return publisher ? publisher.publish(...change) : true;
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

  for await (const change of changes()) await publish(change);
  if (generationSource) {
    publisher = startPublisher({ source: generationSource, changes, maxTokenAgeSeconds, clock, schedule, logger });
  }
  const handler = logHandler({ log, schedule, clock });
  return {
    source: { mark: log.mark, reader: () => log.reader() },
    handler,
    publish,
    close() {
      for (const timer of timers) timer.cancel();
      publisher?.close();
      // Not the log: a gate of this process may still serve its last requests.
      handler.close();
    },
  };
}
