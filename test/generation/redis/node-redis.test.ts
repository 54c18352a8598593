import { EventEmitter } from 'node:events';
import { redisGenerations } from '../../../src/generation/redis/source';
import type { NodeRedisClient } from '../../../src/generation/redis/connection';
import { fakeTime, settle } from '../../support/fake-time';
import { START, keptLog } from '../fixtures';
import { FakeRedis } from './fake';

/** A connection shaped as node-redis is; a copy is not connected yet. */
class NodeRedis extends EventEmitter implements NodeRedisClient {
  isReady = true;
  isDestroyed = false;
  readonly copies: NodeRedis[] = [];
  readonly #server: FakeRedis;
  readonly #connecting: () => Promise<unknown>;

  constructor(server: FakeRedis, connecting: () => Promise<unknown> = () => Promise.resolve()) {
    super();
    this.#server = server;
    this.#connecting = connecting;
  }

  sendCommand(args: string[]): Promise<unknown> {
    const [command = '', ...rest] = args.splice(0);
    this.#server.asked.push(command);
    return Promise.resolve(this.#server.reply(command, rest));
  }

  subscribe(channel: string, listener: (message: string) => void): Promise<unknown> {
    this.on('message', (from, message: string) => void (from === channel && listener(message)));
    return Promise.resolve();
  }

  duplicate(): NodeRedis {
    const copy = new NodeRedis(this.#server, this.#connecting);
    copy.isReady = false;
    this.copies.push(copy);
    return copy;
  }

  async connect(): Promise<void> {
    await this.#connecting();
    this.isReady = true;
  }

  destroy(): void {
    this.isDestroyed = true;
  }
}

function open(connecting?: () => Promise<unknown>) {
  const redis = new FakeRedis();
  const client = new NodeRedis(redis, connecting);
  const { clock, schedule } = fakeTime(START);
  const source = redisGenerations({ client, sentinel: false, clock, schedule, logger: keptLog() });
  return { redis, client, source };
}

describe('a client of node-redis', () => {
  it('reads and publishes', async () => {
    const { redis, source } = open();
    await source.publish('pos', 5);
    expect(redis.take()).toBe('ZADD PUBLISH');
    expect([...(await source.read(0)).floors]).toEqual([['pos', 5]]);
  });

  it('watches on another connection, which it opens and closes', async () => {
    const { client, source } = open();
    const wake = jest.fn();
    const stop = await source.watch(wake);
    await settle();
    const [copy] = client.copies;
    expect(copy?.isReady).toBe(true);
    copy?.emit('message', 'tillgate:generations', 'pos');
    copy?.emit('message', 'another', 'pos');
    expect(wake).toHaveBeenCalledTimes(1);
    stop();
    expect([client.isDestroyed, copy?.isDestroyed]).toEqual([false, true]);
  });

  it('survives a watch whose connection cannot be opened', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note);
    const { source } = open(() => Promise.reject(new Error('ECONNREFUSED')));
    await source.watch(() => undefined);
    for (let turn = 0; turn < 5; turn++) await settle();
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  it('keeps a listener for errors only, once the source is closed: without it a lost connection ends the process', async () => {
    const { client, source } = open();
    const lost = jest.fn();
    await source.watch(() => undefined, lost);
    await source.close();
    expect(['close', 'end', 'reconnecting', 'error'].map((event) => client.listenerCount(event))).toEqual([0, 0, 0, 1]);
    client.emit('error', new Error('gone'));
    expect(lost).not.toHaveBeenCalled();
    expect(client.isDestroyed).toBe(false);
  });
});

describe('a client that is neither', () => {
  const call = (): Promise<unknown> => Promise.resolve();

  it.each<[string, object]>([
    ['without the state of ioredis', { call }],
    ['with a call() that is not a function', { call: true, status: 'ready' }],
    ['without the state of node-redis', { sendCommand: call }],
    ['with a sendCommand() that is not a function', { sendCommand: true, isReady: true }],
  ])('is refused: %s', (_what, client) => {
    expect(() => redisGenerations({ client } as never)).toThrow(
      new TypeError(
        'redisGenerations(): option "client" must be a client of ioredis or of redis (node-redis), got an object',
      ),
    );
  });

  it.each([{ isCluster: true }, { masters: [] }, { getMasterNode: call }])(
    'is refused when it is connected to several servers: %j',
    (member) => {
      const client = Object.assign(new FakeRedis().connect(), member);
      expect(() => redisGenerations({ client })).toThrow(
        'must be connected to one server, the primary; got a client of',
      );
    },
  );
});
