import { EventEmitter } from 'node:events';
import type { IoredisClient } from '../../../src/generation/redis/connection';

/** A member and its score, as Redis prints it. */
type Entry = readonly [member: string, score: string];

/** Scores by member, with their order, which is computed again only after a change. */
class SortedSet extends Map<string, string> {
  #entries: readonly Entry[] | undefined;
  #ascending: readonly Entry[] | undefined;
  #scores: readonly number[] = [];

  override set(member: string, score: string): this {
    this.#entries = this.#ascending = undefined;
    return super.set(member, score);
  }

  override delete(member: string): boolean {
    this.#entries = this.#ascending = undefined;
    return super.delete(member);
  }

  override clear(): void {
    this.#entries = this.#ascending = undefined;
    super.clear();
  }

  /** In the order in which members were added. */
  inserted(): readonly Entry[] {
    return (this.#entries ??= [...this]);
  }

  ascending(): readonly Entry[] {
    if (!this.#ascending) {
      const scored = this.inserted().map((entry) => ({ entry, score: Number(entry[1]) }));
      scored.sort((a, b) => a.score - b.score || (a.entry[0] < b.entry[0] ? -1 : 1));
      this.#ascending = scored.map(({ entry }) => entry);
      this.#scores = scored.map(({ score }) => score);
    }
    return this.#ascending;
  }

  /** Bounds as ZCOUNT takes them: numbers, `-inf`, `+inf`, a last one that is excluded as `(number`. */
  between(from = '-inf', to = '+inf'): [start: number, end: number] {
    const [low = NaN, high = NaN] = [from, to].map((bound) =>
      Number(bound.replace('(', '').replace('inf', 'Infinity')),
    );
    this.ascending();
    const start = this.#first((score) => score >= low);
    const end = this.#first((score) => (to.startsWith('(') ? score >= high : score > high));
    return [start, Math.max(start, end)];
  }

  /** Index of the first score of which `isReached` holds, as of all that follow. */
  #first(isReached: (score: number) => boolean): number {
    let [low, high] = [0, this.#scores.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isReached(this.#scores[middle]!)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** What Redis does with the commands of the source: a sorted set, a channel, and a log of what was asked. */
export class FakeRedis {
  readonly scores = new SortedSet();
  readonly asked: string[] = [];
  readonly clients: FakeClient[] = [];
  role = 'master';
  /** Clock of the server. */
  timeMs = (): number => Infinity;
  whenAsked: (command: string) => void = () => undefined;
  /** Command names that fail with this error. */
  readonly refused = new Map<string, Error>();
  /** Command names that get no response. */
  readonly silent = new Set<string>();

  connect(): FakeClient {
    const client = new FakeClient(this);
    this.clients.push(client);
    return client;
  }

  /** The record as any program writes it. */
  write(clientId: string, generation: number, channel = 'tillgate:generations'): void {
    this.raise(clientId, generation);
    this.say(channel, clientId);
  }

  /** ZADD GT without the PUBLISH. */
  raise(clientId: string, generation: number): void {
    this.scores.set(clientId, String(Math.max(generation, Number(this.scores.get(clientId) ?? 0))));
  }

  say(channel: string, message: string): void {
    for (const client of this.clients) if (client.channel === channel) client.emit('message', channel, message);
  }

  /** What was asked since the last call, names only. */
  take(): string {
    return this.asked.splice(0).join(' ');
  }

  #range([, from = '', to = '', ...options]: readonly string[]): string[] {
    if (options[0] === 'REV') {
      const ascending = this.scores.ascending();
      const { length } = ascending;
      return ascending
        .slice(Math.max(0, length - 1 - Number(to)), Math.max(0, length - Number(from)))
        .reverse()
        .flat();
    }
    if (options[0] === 'WITHSCORES')
      return this.scores
        .ascending()
        .slice(Number(from), Number(to) + 1)
        .flat();
    const [offset, count] = options.slice(2, 4).map(Number) as [number, number];
    const [start, end] = this.scores.between(from, to);
    return this.scores
      .ascending()
      .slice(start + offset, Math.min(end, start + offset + count))
      .flat();
  }

  /** A member keeps its place when its score rises. */
  #scan(from: number, count: number): [cursor: string, members: string[]] {
    const to = from + count;
    return [to < this.scores.size ? String(to) : '0', this.scores.inserted().slice(from, to).flat()];
  }

  reply(command: string, args: readonly string[]): unknown {
    switch (command) {
      case 'PING':
        return 'PONG';
      case 'ROLE':
        return [this.role, 0, []];
      case 'TIME':
        return [String(Math.floor(this.timeMs() / 1_000)), '0'];
      case 'ZCOUNT': {
        const [start, end] = this.scores.between(args[1], args[2]);
        return end - start;
      }
      case 'ZRANGE':
        return this.#range(args);
      case 'ZREMRANGEBYSCORE':
        return this.scores
          .ascending()
          .slice(...this.scores.between(args[1], args[2]))
          .filter(([member]) => this.scores.delete(member)).length;
      case 'ZSCAN':
        return this.#scan(Number(args[1]), Number(args[3]));
      case 'ZMSCORE':
        return args.slice(1).map((clientId) => this.scores.get(clientId) ?? null);
      case 'ZADD':
        return this.raise(String(args[3]), Number(args[2]));
      case 'PUBLISH':
        return void this.say(String(args[0]), String(args[1]));
      default:
        throw new Error(`ERR unknown command '${command}'`);
    }
  }
}

/** One connection, shaped as ioredis is. */
export class FakeClient extends EventEmitter implements IoredisClient {
  status = 'ready';
  channel: string | undefined;
  /** Whether no packet of this connection arrives any more. */
  halfOpen = false;
  readonly #server: FakeRedis;

  constructor(server: FakeRedis) {
    super();
    this.#server = server;
  }

  call(command: string, ...args: string[]): Promise<unknown> {
    const server = this.#server;
    server.asked.push(command);
    server.whenAsked(command);
    if (this.status === 'end') return Promise.reject(new Error('Connection is closed.'));
    if (this.halfOpen || server.silent.has(command)) return new Promise(() => undefined);
    const refused = server.refused.get(command);
    return refused ? Promise.reject(refused) : Promise.resolve(server.reply(command, args));
  }

  subscribe(channel: string): Promise<unknown> {
    this.channel = channel;
    return this.call('PING');
  }

  duplicate(): FakeClient {
    return this.#server.connect();
  }

  disconnect(): void {
    this.status = 'end';
    this.channel = undefined;
    this.emit('close');
    this.emit('end');
  }

  /** The connection breaks, and ioredis mends it by itself. */
  cut(): void {
    this.channel = undefined;
    this.emit('close');
  }
}
