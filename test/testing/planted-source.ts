import { requirePublishable } from '../../src/generation/generation';
import type { Floor, GenerationSnapshot, GenerationSource } from '../../src/generation/source';
import type { GenerationSourceFixture } from '../../src/testing/index';

interface Change {
  generation: number;
  changedMs: number;
}

/** A plain, correct source on a stopped clock; a test plants a fault by replacing one of its parts. */
export class PlantedSource implements GenerationSource {
  readonly changes = new Map<string, Change>();
  readonly wakes = new Set<() => void>();
  nowMs = 1_800_000_000_000;

  // The replaceable parts.
  check: (clientId: string, generation: number) => void = requirePublishable;
  isHigher = (generation: number, known: number): boolean => generation > known;
  keep = (clientId: string, generation: number): void =>
    void this.changes.set(clientId, { generation, changedMs: this.nowMs });
  hasMoved = ({ changedMs }: Change, sinceMs: number): boolean => changedMs >= sinceMs;
  snapshot = (floors: Floor[], _sinceMs: number): GenerationSnapshot => ({ floors, nowMs: this.nowMs });
  hint = (): void => this.wakes.forEach((wake) => wake());
  stop = (wake: () => void): void => void this.wakes.delete(wake);
  end = (): Promise<void> => Promise.resolve(this.wakes.clear());
  cut = (): Promise<void> => Promise.resolve();

  read(sinceMs: number): Promise<GenerationSnapshot> {
    const moved = [...this.changes].filter(([, change]) => this.hasMoved(change, sinceMs));
    const floors = moved.map(([clientId, { generation }]): Floor => [clientId, generation]);
    return Promise.resolve(this.snapshot(floors, sinceMs));
  }

  watch(wake: () => void): Promise<() => void> {
    const watcher = (): void => wake();
    this.wakes.add(watcher);
    return Promise.resolve(() => this.stop(watcher));
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- so that wrong arguments reject instead of throwing
  async publish(clientId: string, generation: number): Promise<void> {
    this.check(clientId, generation);
    if (!this.isHigher(generation, this.changes.get(clientId)?.generation ?? -1)) return;
    this.keep(clientId, generation);
    this.hint();
  }

  close(): Promise<void> {
    return this.end();
  }
}

/** The source as a fixture, with one fault. */
export function planted(plant: (source: PlantedSource) => void): GenerationSourceFixture {
  const source = new PlantedSource();
  plant(source);
  return {
    source,
    another: () => Promise.resolve(source),
    disconnect: () => source.cut(),
    close: () => Promise.resolve(),
  };
}
