import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Change, GenerationSource } from '../../src/gate/generation/log';
import type { MemoryLog } from '../../src/gate/generation/memory';
import type { Publisher } from '../../src/stores/publisher';
import { engineSource, Link } from './link';
import type { Wire, Witness } from './link';
import { Machine, START } from './time';
import type { World } from './world';

/** A change of a client credential. */
export interface ChangeMade {
  readonly clientId: string;
  readonly generation: number;
  readonly recordedMs: number;
  /** When the response to it was sent; never where the server was killed before. */
  ackedMs: number;
  published: boolean;
  /** Whether the record was restored to a state before it. */
  isLost: boolean;
}

/** A token, as a process checks it. */
export interface Token {
  readonly clientId: string;
  readonly generation: number;
  readonly iat: number;
}

/** A client credential. */
export interface Client {
  readonly id: string;
  isDeleted: boolean;
  tokens: Token[];
  readonly changes: ChangeMade[];
  /** Generations that somebody else appended to the log. */
  readonly foreign: number[];
}

/** One text for a change. */
export function keyOf([clientId, generation]: Change): string {
  return `${generation} ${clientId}`;
}

/** A log in the memory of a server, and what serves it. */
interface Served {
  readonly log: MemoryLog;
  readonly handler: ((req: IncomingMessage, res: ServerResponse) => void) & { close(): void };
}

/** Tokens of a client that are kept. */
const MAX_TOKENS = 12;
/** A log in memory takes no generation that is further ahead. */
const MAX_AHEAD_MS = 60_000;
const HOUR = 3_600_000;

/** The authorization server: its record of clients, and what publishes the changes. */
export class Shop {
  readonly #world: World;
  machine: Machine;
  readonly link: Link;
  readonly clients: Client[] = [];
  record = new Map<string, number>();
  readonly #snapshots: { readonly atMs: number; readonly record: ReadonlyMap<string, number> }[] = [];
  publisher: Publisher | undefined;
  served: Served | undefined;
  /** What the log in memory has taken. */
  readonly appended = new Set<string>();
  /** Changes that a log in memory cannot take yet. */
  #later = new Set<Change>();
  /** How long reading the record takes, in ms; -1: it cannot be read. */
  recordMs = 0;
  wholeSinceMs = 0;
  /** Counts starts: what an older incarnation does later is not its own. */
  #starts = 0;

  constructor(world: World) {
    this.#world = world;
    this.machine = new Machine(world.time);
    this.link = new Link(world.time, world.random.fork());
    const { clients, fillers } = world.plan.setting;
    for (let n = 0; n < fillers; n++) this.record.set(`filler-${n}`, START - 7_000 - n);
    for (let n = 0; n < clients; n++) {
      const id = ['pos', 'kiosk', 'web', 'till'][n] as string;
      this.record.set(id, START - 5_000 - n);
      const client: Client = { id, isDeleted: false, tokens: [], changes: [], foreign: [] };
      this.clients.push(client);
      this.issue(client);
    }
    if (world.plan.setting.source === 'memory' || world.plan.setting.source === 'http') this.serve();
  }

  get isUp(): boolean {
    return this.#world.plan.setting.source === 'truth' ? this.served !== undefined : this.publisher !== undefined;
  }

  /** The newest change of a client, as it is in the record. */
  changeOf(id: string): Change {
    return [id, this.record.get(id) as number];
  }

  /** Issues a token of the newest generation. */
  issue(client: Client): Token {
    const generation = this.record.get(client.id) as number;
    const token = { clientId: client.id, generation, iat: Math.floor(this.machine.clock() / 1_000) };
    client.tokens = [...client.tokens, token].slice(-MAX_TOKENS);
    return token;
  }

  /** Changes a client credential. */
  change(client: Client): void {
    const { time } = this.#world;
    if (!client.isDeleted) this.issue(client);
    const generation = Math.max((this.record.get(client.id) ?? 0) + 1, this.machine.clock());
    this.record.set(client.id, generation);
    this.#snapshots.push({ atMs: time.nowMs, record: new Map(this.record) });
    const change: ChangeMade = {
      ...{ clientId: client.id, generation, recordedMs: time.nowMs },
      ...{ ackedMs: Infinity, published: false, isLost: false },
    };
    client.changes.push(change);
    const acknowledge = (published: boolean): void => {
      [change.ackedMs, change.published] = [time.nowMs, published];
      this.#world.tell(`the change of ${client.id} is acknowledged, published: ${published}`);
      this.#world.oracle.acknowledged(change);
    };
    void this.#publish(client.id, generation).then(acknowledge, (error: unknown) =>
      this.#world.oracle.fail('a change is refused by its publisher', String(error)),
    );
    if (!client.isDeleted) this.issue(client);
  }

  async #publish(clientId: string, generation: number): Promise<boolean> {
    if (this.#world.plan.setting.source !== 'truth') return this.publisher?.publish(clientId, generation) ?? false;
    return this.#take([clientId, generation], this.#starts);
  }

  /** The token server whose log is complete by itself appends a change, or waits until its time has come. */
  async #take(change: Change, start: number): Promise<boolean> {
    const { log } = this.served ?? {};
    if (!log || start !== this.#starts) return false;
    const aheadMs = change[1] - this.machine.clock();
    if (aheadMs <= MAX_AHEAD_MS) {
      await log.append([change]);
      this.appended.add(keyOf(change));
      this.#later.delete(change);
      return true;
    }
    this.#later.add(change);
    // Its clock may be set right at any time.
    this.machine.schedule(() => this.#take(change, start), Math.min(aheadMs, 1_000));
    return false;
  }

  /** Begins a log in memory. */
  serve(): void {
    const { subject, time, plan } = this.#world;
    const clock = (): number => this.machine.clock();
    void this.served?.log.close();
    this.served?.handler.close();
    this.appended.clear();
    const maxTokenAgeSeconds = this.#keptSeconds();
    const log = subject.memoryGenerations({ maxTokenAgeSeconds, clock, schedule: time.schedule });
    const completeMs = (): number => {
      const isPending = [...this.#later].some(([, generation]) => generation <= clock() + HOUR);
      return isPending ? 0 : clock();
    };
    const handler = subject.logHandler({
      log,
      schedule: time.schedule,
      ...(plan.setting.source === 'truth' && { clock: completeMs }),
    });
    this.served = { log, handler };
  }

  #keptSeconds(): number {
    const { tokenAgeMs, isKeptTooShort } = this.#world.plan.setting;
    return isKeptTooShort ? 60 : tokenAgeMs / 1_000;
  }

  start(): void {
    if (this.isUp) return;
    const { time, tell } = this.#world;
    const start = ++this.#starts;
    this.wholeSinceMs = time.nowMs;
    tell('the publisher starts');
    if (this.#world.plan.setting.source === 'truth') {
      this.serve();
      this.#later.clear();
      for (const change of this.record) void this.#take(change, start);
      return;
    }
    let isClosed = false;
    const publisher = this.#world.subject.startPublisher({
      source: this.#sourceOf(this.machine, () => isClosed),
      changes: () => this.#readRecord(),
      maxTokenAgeSeconds: this.#keptSeconds(),
      timeoutMs: this.#world.plan.setting.publisherTimeoutMs,
      clock: this.machine.clock,
      schedule: this.machine.schedule,
      logger: this.#world.loggerOf('publisher'),
    });
    const close = (): void => {
      isClosed = true;
      publisher.close();
    };
    this.publisher = { ...publisher, close };
  }

  /** Ends it; a killed one sends nothing any more, not even what it has begun. */
  stop(isKilled: boolean): void {
    this.#world.tell(`the publisher ${isKilled ? 'is killed' : 'is closed'}`);
    this.publisher?.close();
    this.publisher = undefined;
    this.wholeSinceMs = Infinity;
    if (this.#world.plan.setting.source === 'truth') {
      void this.served?.log.close();
      this.served?.handler.close();
      this.served = undefined;
    }
    if (!isKilled) return;
    const { offsetMs, rightSinceMs } = this.machine;
    this.machine.isDead = true;
    this.machine = new Machine(this.#world.time);
    if (rightSinceMs === Infinity) this.machine.set(offsetMs);
  }

  /** The record goes back to what it was so long ago: the database was restored. */
  restoreRecord(ms: number): void {
    const atMs = this.#world.time.nowMs - ms;
    const kept = this.#snapshots.findLast((snapshot) => snapshot.atMs <= atMs);
    if (!kept) return;
    this.record = new Map(kept.record);
    for (const change of this.clients.flatMap(({ changes }) => changes)) {
      if (change.recordedMs > kept.atMs) change.isLost = true;
    }
  }

  async *#readRecord(): AsyncGenerator<Change> {
    if (this.recordMs < 0) throw new Error('no database');
    const record = [...this.record];
    if (this.recordMs > 0) await this.#world.time.pause(this.recordMs);
    yield* record;
  }

  #sourceOf(machine: Machine, isClosed: () => boolean): GenerationSource {
    const { time, plan, oracle } = this.#world;
    const witness: Witness = (changes, unit) => oracle.appends(changes, unit, isClosed());
    const { link } = this;
    const gated: Wire = {
      send: async () => {
        await link.send();
        if (machine.isDead) await new Promise(() => undefined);
      },
      receive: () => link.receive(),
    };
    if (plan.setting.source === 'engine') {
      return engineSource(() => this.#world.engine, gated, time, plan.setting.habits, witness);
    }
    return {
      mark: true,
      reader: () => (this.served as Served).log.reader(),
      append: async (changes, unit) => {
        const applied = witness(changes, unit);
        await gated.send();
        const { log } = this.served as Served;
        const mark = await log.append(changes, unit);
        if (!unit || mark?.unit === unit.mark.unit) for (const change of changes) this.appended.add(keyOf(change));
        applied?.(mark);
        await gated.receive();
        return mark;
      },
    };
  }
}
