import { systemClock } from '../core/clock';
import type { Dependencies } from '../core/dependencies';
import { readOptions } from '../core/options';
import { requirePublishable } from './generation';
import type { Floor, PublishingSource } from './source';

/** Options of `memoryGenerations()`. */
export type MemoryGenerationsOptions = Pick<Dependencies, 'clock'>;

const inMemory = new WeakSet<object>();

/** Whether a source forgets its floors when the process ends. */
export function isInMemory(source: object): boolean {
  return inMemory.has(source);
}

interface Change {
  readonly floor: Floor;
  readonly changedMs: number;
}

/**
 * A source inside one process, for the embedded token server and for tests: every gate that uses it learns of a
 * published floor immediately.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { authenticate } from 'tillgate';
 * import { memoryGenerations } from 'tillgate/generations';
 *
 * const generationSource = memoryGenerations();
 * const gate = authenticate({ issuer: 'https://login.example.com', audience: 'https://api.example.com', generationSource });
 * void generationSource.publish('pos-terminal', Date.now());
 * ```
 */
export function memoryGenerations(options: MemoryGenerationsOptions = {}): PublishingSource {
  const clock = readOptions('memoryGenerations', options, ['clock']).callable('clock', systemClock);
  const changes = new Map<string, Change>();
  const watchers = new Set<() => void>();
  let latestMs = 0;

  /** Never steps back, so that a change is never earlier than the `nowMs` of a previous read. */
  function now(): number {
    return (latestMs = Math.max(latestMs, clock()));
  }

  const source: PublishingSource = {
    read(sinceMs) {
      const floors: Floor[] = [];
      for (const { floor, changedMs } of changes.values()) if (changedMs >= sinceMs) floors.push(floor);
      return Promise.resolve({ floors, nowMs: now() });
    },
    watch(wake) {
      // One entry per watch, even if two watches share a function.
      const watcher = (): void => wake();
      watchers.add(watcher);
      return Promise.resolve(() => void watchers.delete(watcher));
    },
    // eslint-disable-next-line @typescript-eslint/require-await -- so that wrong arguments reject instead of throwing
    async publish(clientId, generation) {
      requirePublishable(clientId, generation);
      const known = changes.get(clientId);
      if (known && generation <= known.floor[1]) return;
      changes.set(clientId, { floor: [clientId, generation], changedMs: now() });
      for (const watcher of watchers) watcher();
    },
    close() {
      watchers.clear();
      return Promise.resolve();
    },
  };
  inMemory.add(source);
  return source;
}
