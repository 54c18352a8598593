import { memoryGenerations } from '../../../src/gate/generation/memory';
import { startPublisher } from '../../../src/stores/publisher';
import type { Publisher, PublisherOptions } from '../../../src/stores/publisher';
import type { Batch, Change, GenerationSource, Mark, Unit } from '../../../src/gate/generation/log';
import { SourceError } from '../../../src/gate/generation/log';
import { fakeTime } from '../../support/fake-time';
import type { FakeTime } from '../../support/fake-time';
import { START, keptLog, reasonOf, startFollower } from './fixtures';
import type { KeptLog, StartedFollower } from './fixtures';
import type { FollowerOptions } from '../../../src/gate/generation/follow-log';

/** What an engine keeps. */
export interface LogState {
  readonly entries: readonly Change[];
  readonly mark: Mark | undefined;
}

/** An engine that can be wiped, rolled back and cut off: a log as Redis keeps it beside a token server. */
export class Engine {
  state: LogState = { entries: [], mark: undefined };
  /** Units so far, refused ones included. */
  units = 0;
  /** Runs before each unit is applied. */
  beforeUnit: () => void = () => undefined;
  readonly #listeners = new Set<() => void>();

  wipe(): void {
    this.state = { entries: [], mark: undefined };
  }

  apply(changes: readonly Change[], unit: Unit | undefined): Mark | undefined {
    this.units++;
    this.beforeUnit();
    const { entries, mark } = this.state;
    if (unit && (unit.expected?.epoch !== mark?.epoch || unit.expected?.unit !== mark?.unit)) return mark;
    this.state = { entries: [...entries, ...changes], mark: unit ? unit.mark : mark };
    for (const listener of [...this.#listeners]) listener();
    return this.state.mark;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** A connection to an engine, which can be cut. */
export class Link {
  cut = false;
  /** Responses are lost, requests arrive. */
  deaf = false;
  readonly source: GenerationSource;

  /** @param engine - read at each call, so that a test can replace it by another one */
  constructor(engine: () => Engine, time: FakeTime) {
    const reach = (): Engine => {
      if (this.cut) throw new SourceError('cut');
      return engine();
    };
    this.source = {
      mark: true,
      reader: () => {
        let position = 0;
        let epoch: string | undefined;
        const read = (): Batch => {
          const { entries, mark } = reach().state;
          // What was read before there was a mark is of no epoch.
          if (position > entries.length || (mark && mark.epoch !== epoch)) position = 0;
          epoch = mark?.epoch ?? epoch;
          const changes = entries.slice(position);
          position = entries.length;
          return { changes, mark, end: true };
        };
        return {
          async next(waitMs) {
            const batch = read();
            if (batch.changes.length > 0 || waitMs === 0) return batch;
            await new Promise<void>((resolve) => {
              const stop = reach().subscribe(() => done());
              const timer = time.schedule(() => done(), waitMs);
              const done = (): void => {
                stop();
                timer.cancel();
                resolve();
              };
            });
            return read();
          },
          close() {},
        };
      },
      // eslint-disable-next-line @typescript-eslint/require-await -- so that a cut rejects
      append: async (changes, unit) => {
        const mark = reach().apply(changes, unit);
        if (this.deaf) throw new SourceError('no response');
        return mark;
      },
    };
  }
}

/** A publisher with its record, the engine, and processes that read it. */
export class Scene {
  readonly time = fakeTime(START);
  engine = new Engine();
  readonly link = new Link(() => this.engine, this.time);
  readonly log: KeptLog = keptLog();
  readonly record = new Map<string, number>();
  publisher: Publisher | undefined;

  /** Starts the publisher, and waits for its first mark. */
  async publish(options: Partial<PublisherOptions> = {}): Promise<Publisher> {
    this.publisher = startPublisher({
      source: this.link.source,
      changes: () => this.record,
      clock: this.time.clock,
      schedule: this.time.schedule,
      logger: this.log,
      ...options,
    });
    await this.time.advance(0);
    return this.publisher;
  }

  /** Changes a client credential; resolves with whether the change is in the log. */
  async change(clientId: string): Promise<boolean> {
    const generation = Math.max((this.record.get(clientId) ?? 0) + 1, this.time.clock());
    this.record.set(clientId, generation);
    const publishing = this.publisher?.publish(clientId, generation);
    let published: boolean | undefined;
    void publishing?.then((value) => (published = value));
    await this.time.advance(0);
    if (published === undefined) await this.time.advance(2_000);
    return published as boolean;
  }

  /** A process with a link of its own. */
  process(
    options: Partial<FollowerOptions> = {},
    engine = () => this.engine,
  ): StartedFollower & { readonly link: Link } {
    const link = new Link(engine, this.time);
    return { ...startFollower({ source: link.source, ...options }, this.time), link };
  }
}

/** A log whose reader returns these members of a batch after its wait. */
export function readBy(time: FakeTime, read: () => Partial<Batch> | Promise<Partial<Batch>>): GenerationSource {
  return {
    mark: true,
    reader: () => ({
      async next(waitMs) {
        if (waitMs > 0) await new Promise<void>((resolve) => time.schedule(resolve, waitMs));
        return { changes: [], end: true, ...(await read()) };
      },
      close() {},
    }),
  };
}

/** A mark of that time: each is another one. */
export function markAt(completeMs: number, epoch = 'e'): Mark {
  return { epoch, unit: completeMs, completeMs, keptMs: 90_000_000 };
}

/** A source in memory, on fake time. */
export function memoryOn(time: FakeTime): ReturnType<typeof memoryGenerations> {
  return memoryGenerations({ clock: time.clock, schedule: time.schedule });
}

/** What a process says about a token of `pos`. */
export function verdict({ follower }: StartedFollower, generation: number): string {
  return reasonOf(() => follower.recheck('pos', generation)) ?? 'accepted';
}

/** A scene whose publisher runs, and has published a change of each of these clients. */
export async function publishing(...clientIds: readonly string[]): Promise<Scene> {
  const scene = new Scene();
  await scene.publish();
  for (const clientId of clientIds) await scene.change(clientId);
  return scene;
}

/** The same with one change of `pos`, and a process that knows it. */
export async function running(): Promise<{ scene: Scene; api: ReturnType<Scene['process']> }> {
  const scene = await publishing('pos');
  const api = scene.process();
  await scene.time.advance(1_500);
  expect(api.follower.status()).toMatchObject({ source: 'fresh', floors: 1 });
  return { scene, api };
}
