import fc from 'fast-check';
import { memoryGenerations } from '../../../src/gate/generation/memory';
import { generationSourceCases } from '../../../src/testing/source-cases/source-cases';
import { amount } from '../../support/amount';
import { fakeTime } from '../../support/fake-time';
import { HOUR, START, reasonOf } from './fixtures';
import { Scene } from './scene';
import type { LogState } from './scene';

function create() {
  const source = memoryGenerations();
  return Promise.resolve({
    source,
    another: () => Promise.resolve({ ...source, close: undefined as never }),
    close: () => source.close(),
  });
}

describe('memoryGenerations', () => {
  for (const { name, run } of generationSourceCases({ create, changes: amount(2_500, 100_000) })) it(name, run);
});

describe('the log in memory', () => {
  it('trims changes that no token can need any more, and readers go on', async () => {
    const time = fakeTime(START);
    const log = memoryGenerations({ maxTokenAgeSeconds: 3_600, clock: time.clock, schedule: time.schedule });
    const reader = log.reader();
    const old = Array.from({ length: 2_000 }, (_, index) => [`old-${index}`, START] as const);
    await log.append(old);
    expect((await reader.next(0)).changes).toEqual(old);
    // A clock that leaps makes nothing old.
    time.step(48 * HOUR);
    await log.append([['early', START]]);
    expect((await log.reader().next(0)).changes).toEqual(old);
    time.step(-48 * HOUR);
    for (let hours = 0; hours < 3; hours++) {
      await time.advance(HOUR);
      await log.append([]);
    }
    await log.append([['new', START]]);
    for (const one of [reader, log.reader()]) {
      expect((await one.next(0)).changes).toEqual([
        ['early', START],
        ['new', START],
      ]);
    }
  });

  it('is read from the oldest change by who has a position of another log', async () => {
    const [log, other] = [memoryGenerations(), memoryGenerations()];
    await other.append([
      ['a', 1],
      ['b', 2],
    ]);
    await log.append([['pos', 1]]);
    const { position } = other.read(undefined);
    for (const after of [position, 'x', '', '-1', `${position}9`])
      expect(log.read(after).changes).toEqual([['pos', 1]]);
  });

  it('refuses wrong options', () => {
    expect(() => memoryGenerations({ maxTokenAge: 5 } as never)).toThrow(
      'memoryGenerations(): unknown option "maxTokenAge"',
    );
  });
});

/*
 * The model: a publisher with a durable record, a log engine, and processes that read it, on fake time. A history is any
 * sequence of changes and faults. What must hold is in `check()` and `heal()`.
 */
const CLIENTS = ['pos', 'kiosk', 'web'];
const PROCESSES = 3;
const MAX_STALENESS_MS = 4_000;
const MAX_SILENCE_MS = 12_000;
/** The gate's clock tolerance, by which a mark may be older than its time says. */
const SKEW_MS = 1_000;

type Process = ReturnType<Scene['process']>;

class World {
  readonly scene = new Scene();
  readonly processes: Process[] = [];
  /** By process and client: the highest generation that it has refused as superseded. */
  readonly #refused = new Map<string, number>();
  /** Every change: client, generation that died, when it was acknowledged. */
  readonly #changes: { clientId: string; dead: number; atMs: number }[] = [];
  readonly #states: LogState[] = [];
  /** How often the engine went back between two units of the publisher. */
  sabotages = 0;

  async begin(): Promise<void> {
    for (const clientId of CLIENTS) this.scene.record.set(clientId, START - 1);
    await this.startPublisher();
    for (let index = 0; index < PROCESSES; index++) this.startProcess(index);
    await this.scene.time.advance(3_000);
  }

  async startPublisher(): Promise<void> {
    this.scene.publisher?.close();
    await this.scene.publish({ timeoutMs: 500 });
  }

  startProcess(index: number): void {
    void this.processes[index]?.follower.close();
    this.processes[index] = this.scene.process({
      pollMs: 1_000,
      skewMs: SKEW_MS,
      readTimeoutMs: 1_000,
      maxStalenessMs: MAX_STALENESS_MS,
      maxSilenceMs: MAX_SILENCE_MS,
    });
    // A new process has refused nothing yet.
    for (const clientId of CLIENTS) this.#refused.delete(`${index} ${clientId}`);
  }

  async change(clientId: string): Promise<void> {
    const { scene } = this;
    const [dead, sabotages] = [scene.record.get(clientId)!, this.sabotages];
    const published = await scene.change(clientId);
    const generation = scene.record.get(clientId)!;
    this.#changes.push({ clientId, dead, atMs: scene.time.clock() });
    const isInLog = scene.engine.state.entries.some((entry) => entry[0] === clientId && entry[1] === generation);
    // Where the engine did not go back right after the unit.
    if (published && this.sabotages === sabotages) expect(isInLog).toBe(true);
  }

  remember(): void {
    this.#states.push(this.scene.engine.state);
  }

  /** The engine goes back to a state that it once had: a restore, or a lagging copy that is promoted. */
  goBack(which: number): void {
    const state = this.#states[which % Math.max(1, this.#states.length)];
    if (state) this.scene.engine.state = state;
  }

  verdict(index: number, clientId: string, generation: number): string {
    const { follower } = this.processes[index]!;
    return reasonOf(() => follower.recheck(clientId, generation)) ?? 'accepted';
  }

  /** What must hold at any moment. */
  check(): void {
    const nowMs = this.scene.time.clock();
    for (let index = 0; index < PROCESSES; index++) {
      for (const { clientId, dead, atMs } of this.#changes) {
        const verdict = this.verdict(index, clientId, dead);
        const key = `${index} ${clientId}`;
        // No process accepts what it has refused.
        if (verdict === 'superseded') this.#refused.set(key, Math.max(dead, this.#refused.get(key) ?? 0));
        if (dead <= (this.#refused.get(key) ?? -1)) expect([key, verdict]).toEqual([key, 'superseded']);
        // An acknowledged change is in force after maxSilenceMs, or the process refuses.
        const isOverdue = nowMs - atMs > MAX_SILENCE_MS + SKEW_MS;
        if (isOverdue) expect([key, nowMs - atMs, verdict]).not.toEqual([key, nowMs - atMs, 'accepted']);
      }
    }
  }

  /** Once the faults are over, every process knows every change, and refuses no good token. */
  async heal(): Promise<void> {
    const { scene, processes } = this;
    scene.engine.beforeUnit = () => undefined;
    for (const link of [scene.link, ...processes.map((process) => process.link)]) link.cut = link.deaf = false;
    await scene.time.advance(10_000);
    this.check();
    for (const [clientId, generation] of scene.record) {
      for (let index = 0; index < PROCESSES; index++) {
        expect(this.verdict(index, clientId, generation - 1)).toBe('superseded');
        expect(this.verdict(index, clientId, generation)).toBe('accepted');
      }
    }
    expect(scene.publisher!.status()).toMatchObject({ state: 'current', pending: 0 });
  }
}

const which = fc.nat({ max: PROCESSES - 1 });

type Step = readonly [name: string, run: (world: World) => unknown];
const stepOf = (name: string, run: (world: World) => unknown): Step => [name, run];

/** Steps of a history, each with how often it comes. */
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(...CLIENTS).map((id) => stepOf(`change ${id}`, (world) => world.change(id))),
  },
  {
    weight: 6,
    arbitrary: fc
      .constantFrom(1, 50, 400, 1_000, 3_000, 6_000, 15_000)
      .map((ms) => stepOf(`wait ${ms}`, (world) => world.scene.time.advance(ms))),
  },
  { weight: 3, arbitrary: fc.constant(stepOf('remember', (world) => world.remember())) },
  { weight: 3, arbitrary: fc.nat().map((n) => stepOf(`go back ${n}`, (world) => world.goBack(n))) },
  { weight: 1, arbitrary: fc.constant(stepOf('wipe', (world) => world.scene.engine.wipe())) },
  {
    weight: 3,
    arbitrary: fc.boolean().map((cut) => stepOf(`publisher cut: ${cut}`, (world) => (world.scene.link.cut = cut))),
  },
  {
    weight: 2,
    arbitrary: fc.boolean().map((deaf) => stepOf(`publisher deaf: ${deaf}`, (world) => (world.scene.link.deaf = deaf))),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(which, fc.boolean())
      .map(([n, cut]) => stepOf(`process ${n} cut: ${cut}`, (world) => (world.processes[n]!.link.cut = cut))),
  },
  { weight: 2, arbitrary: which.map((n) => stepOf(`process ${n} restarts`, (world) => world.startProcess(n))) },
  { weight: 1, arbitrary: fc.constant(stepOf('publisher restarts', (world) => world.startPublisher())) },
);

/** The engine changes under the hands of the publisher: between two of its units. */
const sabotage = fc.option(fc.record({ unit: fc.integer({ min: 2, max: 40 }), back: fc.nat() }), { nil: undefined });

describe('histories of changes and faults', () => {
  it('lose no acknowledged change, and accept nothing that was refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), sabotage, async (steps, fault) => {
        const world = new World();
        await world.begin();
        world.scene.engine.beforeUnit = () => {
          if (!fault || world.scene.engine.units !== fault.unit) return;
          world.sabotages++;
          world.goBack(fault.back);
        };
        for (const [, run] of steps) {
          await run(world);
          world.check();
        }
        await world.heal();
        world.scene.publisher?.close();
        await Promise.all(world.processes.map(({ follower }) => follower.close()));
      }),
      { numRuns: amount(20, 1_000) },
    );
  });
});
