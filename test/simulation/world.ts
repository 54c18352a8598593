import type { Logger } from '../../src/gate/core/logger';
import { Engine } from './engine';
import { EVENTS, heal } from './events';
import { Oracle, QUIET_MS } from './oracle';
import type { Violation } from './oracle';
import { REST_MS } from './plan';
import type { Plan, PlannedEvent } from './plan';
import { Process } from './process';
import { Random } from './random';
import { keyOf, Shop } from './shop';
import type { Client, Token } from './shop';
import type { Subject } from './subject';
import { START, VirtualTime } from './time';

/** What became of a world. */
export interface Outcome {
  readonly violation: Violation | undefined;
  /** Planned events and timers that ran. */
  readonly events: number;
  /** How long it took by its own time. */
  readonly simulatedMs: number;
  /** Decisions that were compared with the promise. */
  readonly decisions: number;
}

const SILENT: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Publisher, log, links and processes in virtual time. */
export class World {
  readonly plan: Plan;
  readonly subject: Subject;
  readonly random: Random;
  readonly time = new VirtualTime();
  readonly oracle = new Oracle(this);
  engine = new Engine(() => this.time.nowMs);
  /** Since when the log is the one that its publisher writes. */
  logSinceMs = 0;
  readonly shop: Shop;
  readonly processes: readonly Process[];
  readonly #story: ((line: string) => void) | undefined;
  readonly #epochs = new Map<string, string>();
  readonly #said = new Map<string, string>();
  #inLog: { readonly of: object; readonly keys: ReadonlySet<string> } | undefined;
  #decisions = 0;
  #isHealed = false;

  constructor(plan: Plan, subject: Subject, story?: (line: string) => void) {
    this.plan = plan;
    this.subject = subject;
    this.#story = story;
    this.random = new Random(plan.seed + 1);
    this.shop = new Shop(this);
    this.processes = plan.setting.processes.map((process, index) => new Process(this, process, index));
  }

  /** Runs it until a promise is broken, or everything has been whole for a while. */
  async run(): Promise<Outcome> {
    const { events, healMs, setting } = this.plan;
    const random = this.random.fork();
    this.shop.start();
    for (const process of this.processes) this.later(process.plan.startsMs, () => process.start());
    const pending = [...events];
    const endMs = healMs + REST_MS;
    while (this.time.nowMs < endMs && !this.oracle.violation) {
      const nextMs = Math.min(pending[0]?.atMs ?? healMs, healMs);
      const lookMs = this.time.nowMs + random.int(60, this.#isHealed ? 6_000 : 1_400);
      await this.time.advanceTo(Math.min(lookMs, endMs, this.#isHealed ? Infinity : nextMs));
      while (!this.#isHealed && pending[0] && pending[0].atMs <= this.time.nowMs)
        this.#happen(pending.shift() as PlannedEvent);
      if (!this.#isHealed && this.time.nowMs >= healMs) {
        this.#isHealed = true;
        heal(this);
        this.time.schedule(() => {
          for (const process of this.processes) process.questionsAtRest = process.questions;
        }, QUIET_MS);
      }
      this.#look(random, setting.newTokenChance);
    }
    if (!this.oracle.violation) for (const process of this.processes) this.oracle.rested(process);
    for (const process of this.processes) process.stop();
    this.shop.stop(true);
    const { time, oracle } = this;
    return {
      violation: oracle.violation,
      events: events.length + time.events,
      simulatedMs: time.nowMs,
      decisions: this.#decisions,
    };
  }

  /** The time of a clock that is right. */
  nowMs(): number {
    return START + Math.floor(this.time.nowMs);
  }

  /** Ends something, unless the world was healed before. */
  later(ms: number, run: () => void): void {
    this.time.schedule(() => {
      if (!this.#isHealed) run();
    }, ms);
  }

  /** What the log has, each as one text. */
  changesInLog(): ReadonlySet<string> {
    if (this.plan.setting.source !== 'engine') return this.shop.appended;
    const { entries } = this.engine.state;
    if (this.#inLog?.of !== entries) {
      this.#inLog = { of: entries, keys: new Set(entries.map(({ change }) => keyOf(change))) };
    }
    return this.#inLog.keys;
  }

  /** Epochs are named in the order in which they appear. */
  nameOf(epoch: string): string {
    const name = this.#epochs.get(epoch) ?? `e${this.#epochs.size + 1}`;
    this.#epochs.set(epoch, name);
    return name;
  }

  tell = (line: string): void => {
    if (!this.#story) return;
    const named = line.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, (epoch) => this.nameOf(epoch));
    this.#story(`${(this.time.nowMs / 1_000).toFixed(3).padStart(8)} s  ${named}`);
  };

  loggerOf(who: string): Logger {
    if (!this.#story) return SILENT;
    const log = (fields: object, message: string): void => {
      const { found, lastError, detail } = fields as Record<string, unknown>;
      this.tell(`  ${who} logs: ${message} ${JSON.stringify({ found, lastError, detail })}`);
    };
    return { info: log, warn: log, error: log };
  }

  #happen(event: PlannedEvent): void {
    const { kind, who, client, ms, n, fault } = event;
    this.tell(`EVENT ${kind} (process ${who}, client ${client}, ${ms} ms, n ${n}, ${fault})`);
    EVENTS[kind]?.(this, event);
  }

  /** Tokens are presented everywhere. */
  #look(random: Random, newTokenChance: number): void {
    const { clients } = this.shop;
    if (random.chance(0.15)) {
      const client = random.pick(clients);
      if (!client.isDeleted) this.shop.issue(client);
    }
    for (const client of clients) {
      const newest = client.tokens.at(-1) as Token;
      const dead = client.tokens.findLast(({ generation }) => generation < newest.generation);
      for (const process of this.processes) {
        if (!process.follower || process.machine.isSuspended) continue;
        // A known token teaches nothing.
        this.#present(process, client, newest, !random.chance(newTokenChance));
        if (dead) this.#present(process, client, dead, random.chance(0.8));
        if (random.chance(0.4)) this.#present(process, client, random.pick(client.tokens), true);
      }
    }
    for (const process of this.processes) this.oracle.looked(process);
  }

  #present(process: Process, client: Client, token: Token, isKnown: boolean): void {
    if (process.isExpired(token)) return;
    this.#decisions++;
    const verdict = process.present(token, isKnown);
    if (this.#story) {
      const who = `${process.name} says about ${client.id} of ${process.valueOf(token)}`;
      if (this.#said.get(who) !== verdict) this.tell(`${who}: ${verdict}`);
      this.#said.set(who, verdict);
    }
    this.oracle.decided(process, client, token, verdict);
  }
}
