import { EventEmitter } from 'node:events';
import type { IoredisClient } from '../../../src/generation/redis/connection';

/** What Redis does with the commands of the source: a sorted set, a channel, and a log of what was asked. */
export class FakeRedis {
  readonly scores = new Map<string, string>();
  readonly asked: string[] = [];
  readonly clients: FakeClient[] = [];
  role = 'master';
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
    this.scores.set(clientId, String(Math.max(generation, Number(this.scores.get(clientId) ?? 0))));
    this.say(channel, clientId);
  }

  say(channel: string, message: string): void {
    for (const client of this.clients) if (client.channel === channel) client.emit('message', channel, message);
  }

  /** What was asked since the last call, names only. */
  take(): string {
    return this.asked.splice(0).join(' ');
  }

  reply(command: string, args: readonly string[]): unknown {
    switch (command) {
      case 'PING':
        return 'PONG';
      case 'ROLE':
        return [this.role, 0, []];
      case 'ZCARD':
        return this.scores.size;
      case 'ZSCAN':
        return ['0', [...this.scores].flat()];
      case 'ZMSCORE':
        return args.slice(1).map((clientId) => this.scores.get(clientId) ?? null);
      case 'ZADD':
        return void this.scores.set(String(args[3]), String(args[2]));
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
