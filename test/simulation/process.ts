import type { Follower } from '../../src/gate/generation/follower';
import type { GenerationSource } from '../../src/gate/generation/log';
import type { Engine } from './engine';
import { engineSource, fetchFrom, Link } from './link';
import { BOUNDS } from './plan';
import type { ProcessPlan } from './plan';
import type { Token } from './shop';
import { Machine } from './time';
import type { World } from './world';

/** What a process says about a token: `accepted`, or the reason of the refusal. */
export type Verdict = string;

/** A process with a gate: its follower, with the options that `authenticate()` gives it. */
export class Process {
  readonly name: string;
  readonly plan: ProcessPlan;
  readonly machine: Machine;
  readonly link: Link;
  readonly #world: World;
  follower: Follower | undefined;
  /** An engine that it reads although another one has taken its place. */
  demoted: Engine | undefined;
  startedMs = Infinity;
  /** Since when it has read the engine that its publisher writes to, and was not suspended. */
  wholeSinceMs = 0;
  /** When the question began whose response was the end of the log, lately. */
  completeMs = -Infinity;
  /** The same by its own clock. */
  completeClockMs = -Infinity;
  /** When it got the end of the log for the first time, or after an outage. */
  recoveredMs = Infinity;
  /** By client: the highest generation that it has refused as superseded, and when. */
  readonly refused = new Map<string, { readonly value: number; readonly atMs: number }>();
  settledMs: number | undefined;
  questions = 0;
  questionsAtRest = 0;

  constructor(world: World, plan: ProcessPlan, index: number) {
    this.#world = world;
    this.plan = plan;
    this.name = `process ${index}`;
    this.machine = new Machine(world.time);
    this.link = new Link(world.time, world.random.fork());
  }

  start(): void {
    if (this.follower) return;
    const { subject, time, plan, random, tell } = this.#world;
    const { claim, pollMs, readTimeoutMs } = this.plan;
    tell(`${this.name} starts`);
    const own = random.fork();
    const follower = new subject.Follower({
      issuer: 'https://login.example',
      rule: { claim, decimalString: false, toleranceMs: BOUNDS.skewMs },
      source: this.#source(),
      ownsSource: plan.setting.source === 'http' || plan.setting.source === 'truth',
      maxTokenAgeMs: plan.setting.tokenAgeMs,
      onStale: 'reject',
      ...BOUNDS,
      pollMs,
      readTimeoutMs,
      clock: this.machine.clock,
      schedule: this.machine.schedule,
      random: () => own.next(),
      logger: this.#world.loggerOf(this.name),
    });
    this.follower = follower;
    [this.startedMs, this.completeMs, this.recoveredMs, this.settledMs] = [time.nowMs, -Infinity, Infinity, undefined];
    this.refused.clear();
    void follower.settled()?.then(() => (this.settledMs = time.nowMs));
  }

  stop(): void {
    if (!this.follower) return;
    this.#world.tell(`${this.name} stops`);
    void this.follower.close();
    this.follower = undefined;
    this.startedMs = Infinity;
  }

  /** What is compared with the floors. */
  valueOf({ generation, iat }: Token): number {
    return this.plan.claim === 'iat' ? iat * 1_000 : generation;
  }

  isExpired({ iat }: Token): boolean {
    const { plan } = this.#world;
    // Floors outlive tokens by a minute of difference between clocks: a clock that is slower sees dead ones live on.
    const nowMs = Math.max(this.machine.clock(), this.#world.nowMs() - 60_000);
    return iat * 1_000 + plan.setting.tokenAgeMs + BOUNDS.skewMs <= nowMs;
  }

  /** Presents a token: as a new one, which teaches, or as a known one. */
  present(token: Token, isKnown: boolean): Verdict {
    const { clientId, generation, iat } = token;
    try {
      if (isKnown) this.follower?.recheck(clientId, this.valueOf(token));
      else this.follower?.verify(clientId, { generation, iat });
      return 'accepted';
    } catch (error) {
      const { reason } = error as { reason?: string };
      if (reason === undefined) throw error;
      return reason;
    }
  }

  /** Its source, with a look at what the follower gets to know. */
  #source(): GenerationSource {
    const source = this.#sourceOfSetting();
    return {
      mark: true,
      reader: () => {
        const reader = source.reader();
        return {
          next: async (waitMs) => {
            const arrived = this.#asks();
            try {
              const batch = await reader.next(waitMs);
              if (batch.end) arrived();
              return batch;
            } finally {
              this.#world.time.expectTurn();
            }
          },
          close: () => reader.close(),
        };
      },
      close: () => Promise.resolve(source.close?.()),
    };
  }

  /** A question is asked; the returned function says that its response was the end of the log. */
  #asks(): () => void {
    const { time } = this.#world;
    const [askedMs, askedClockMs] = [time.nowMs, this.machine.clock()];
    this.questions++;
    return () => {
      if (this.startedMs > askedMs || this.completeMs > askedMs) return;
      if (time.nowMs - this.completeMs > BOUNDS.maxStalenessMs) this.recoveredMs = time.nowMs;
      [this.completeMs, this.completeClockMs] = [askedMs, askedClockMs];
    };
  }

  #sourceOfSetting(): GenerationSource {
    const { subject, time, plan, shop } = this.#world;
    const { source, habits } = plan.setting;
    if (source === 'engine') {
      const engine = (): Engine => this.demoted ?? this.#world.engine;
      return engineSource(engine, this.link, time, habits);
    }
    if (source === 'memory') {
      return { mark: true, reader: () => (shop.served as NonNullable<typeof shop.served>).log.reader() };
    }
    return subject.httpGenerations({
      url: 'https://login.example/generations',
      fetch: fetchFrom(() => shop.served?.handler, this.link),
      schedule: this.machine.schedule,
      timeoutMs: this.plan.readTimeoutMs,
    });
  }
}
