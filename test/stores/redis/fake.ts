import { EventEmitter } from 'node:events';
import type { IoredisClient } from '../../../src/stores/redis/connection';

type Entry = readonly [id: string, fields: readonly string[]];

/** What Redis does with the commands of the log: one stream, whose ids tests choose. */
export class FakeRedis {
  entries: Entry[] = [];
  /** The values of the mark's fields, in the order in which they are asked for. */
  storedMark: (string | null)[] = [null, null, null, null, null, null];
  readonly asked: string[][] = [];
  readonly clients: FakeClient[] = [];
  /** Commands that fail with this error. */
  readonly refused = new Map<string, Error>();
  /** Commands that get no response. */
  readonly silent = new Set<string>();
  /** Responses to commands that this class does not run. */
  readonly replies = new Map<string, unknown>();
  /** The form in which XREAD returns its entries. */
  formOfRead = (entries: readonly Entry[]): unknown => [['tillgate:generations', entries]];
  #lastMs = 0;

  connect(): FakeClient {
    const client = new FakeClient(this);
    this.clients.push(client);
    return client;
  }

  add(fields: readonly string[], id = `${++this.#lastMs}-0`): void {
    this.entries.push([id, fields]);
  }

  change(clientId: string, generation: number, id?: string): void {
    this.add(['client_id', clientId, 'generation', String(generation)], id);
  }

  /** Writes a mark that covers the entries up to `last`, by default all of them. */
  mark(epoch: string, unit: number, last = this.entries.at(-1)?.[0] ?? '0-0', format: string | null = null): void {
    this.storedMark = [epoch, String(unit), '5', '6', last, format];
  }

  /** Names of what was asked since the last call. */
  take(): string {
    return this.asked
      .splice(0)
      .map(([name]) => name)
      .join(' ');
  }

  run(args: readonly string[]): unknown {
    const [command, ...rest] = args;
    if (command === 'HMGET') return this.storedMark;
    if (command === 'XREVRANGE') return this.entries.toReversed().slice(0, Number(rest[4]));
    if (command === 'XADD') return this.add(rest.slice(2));
    if (command === 'XREAD') {
      const after = Number(rest.at(-1)?.split('-')[0]);
      const found = this.entries.filter(([id]) => Number(id.split('-')[0]) > after).slice(0, Number(rest[1]));
      return found.length === 0 ? null : this.formOfRead(found);
    }
    if (command !== undefined && this.replies.has(command)) return this.replies.get(command);
    throw new Error(`ERR unknown command '${command}'`);
  }
}

/** One connection, shaped as ioredis is. */
export class FakeClient extends EventEmitter implements IoredisClient {
  status = 'ready';
  isCluster = false;
  /** What `duplicate()` was given. */
  overrides: unknown[] | undefined;
  readonly #server: FakeRedis;
  readonly #pending = new Set<(error: Error) => void>();

  constructor(server: FakeRedis) {
    super();
    this.#server = server;
  }

  async call(...args: string[]): Promise<unknown> {
    const [command = ''] = args;
    const { asked, silent, refused } = this.#server;
    asked.push(args);
    if (this.status === 'end') throw new Error('Connection is closed.');
    if (silent.has(command)) return new Promise((_, reject) => this.#pending.add(reject));
    const refusal = refused.get(command);
    if (refusal) throw refusal;
    return this.#server.run(args);
  }

  duplicate(...overrides: never[]): FakeClient {
    const copy = this.#server.connect();
    copy.overrides = overrides;
    return copy;
  }

  disconnect(): void {
    this.status = 'end';
    for (const reject of this.#pending) reject(new Error('Connection is closed.'));
  }
}
