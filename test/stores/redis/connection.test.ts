import { EventEmitter } from 'node:events';
import { generationsFromUrl } from '../../../src/gate/generation/from-url';
import { connectToRedis, redisConnection } from '../../../src/stores/redis/connection';
import type { NodeRedisClient } from '../../../src/stores/redis/connection';
import { redisFromUrl } from '../../../src/stores/redis/log';
import { FakeRedis } from './fake';

/** A client shaped as those of node-redis are; `members` tell which one it is. */
class NodeRedisFake extends EventEmitter implements NodeRedisClient {
  isOpen = false;
  readonly sent: unknown[][] = [];
  readonly copies: NodeRedisFake[] = [];
  /** What the next attempts to connect do. */
  connecting: (() => Promise<unknown>)[] = [];

  constructor(readonly members: object = {}) {
    super();
    Object.assign(this, members);
  }

  sendCommand(...args: unknown[]): Promise<unknown> {
    this.sent.push(args);
    return Promise.resolve('OK');
  }

  duplicate(): NodeRedisFake {
    const copy = new NodeRedisFake(this.members);
    copy.connecting = this.connecting;
    this.copies.push(copy);
    return copy;
  }

  connect(): Promise<unknown> {
    return (this.connecting.shift() ?? (() => Promise.resolve()))();
  }

  destroy(): void {
    if (!this.isOpen) throw new Error('The client is closed');
  }
}

describe('a client of node-redis', () => {
  it.each<[string, object, unknown[], unknown[]]>([
    ['createClient()', {}, [['EVAL', 's', '1', 'k']], [['XREAD', 'COUNT']]],
    ['createSentinel()', { getSentinelNode() {} }, [false, ['EVAL', 's', '1', 'k']], [true, ['XREAD', 'COUNT']]],
    ['createCluster()', { getSlotMaster() {} }, ['k', false, ['EVAL', 's', '1', 'k']], ['k', true, ['XREAD', 'COUNT']]],
  ])('made by %s gets commands with the key and whether a replica may run them, as it needs them', async (...row) => {
    const [, members, write, read] = row;
    const client = new NodeRedisFake(members);
    const connection = redisConnection(client);
    await connection.send(['EVAL', 's', '1', 'k'], 'k');
    await connection.send(['XREAD', 'COUNT'], 'k');
    await connection.send(['SET', 'key', '1']);
    expect(client.sent.slice(0, 2)).toEqual([write, read]);
    expect(connection.isCluster).toBe('getSlotMaster' in members);
    if (connection.isCluster) expect(client.sent[2]).toEqual(['key', false, ['SET', 'key', '1']]);
  });

  it('is copied for commands that block; they wait for the connection, which is tried again with the next one', async () => {
    const client = new NodeRedisFake({ getSlotMaster() {} });
    const failure = new Error('no server');
    client.connecting = [() => Promise.reject(failure)];
    const copy = redisConnection(client).duplicate();
    await expect(copy.send(['XREAD'], 'k')).rejects.toBe(failure);
    expect(await copy.send(['XREAD'], 'k')).toBe('OK');
    expect(client.copies[0]?.sent).toHaveLength(1);
    // Closed twice, or never opened: nothing is thrown.
    copy.close();
    // Without a listener, an error would end the process.
    expect(() => client.copies[0]?.emit('error', failure)).not.toThrow();
  });
});

describe('a cluster client of ioredis', () => {
  it('is copied with the options of its servers, without their time limits', () => {
    const redis = new FakeRedis();
    const options = { redisOptions: { password: 'p', commandTimeout: 50 } };
    const client = Object.assign(redis.connect(), { isCluster: true, options });
    redisConnection(client).duplicate();
    const patient = { password: 'p', commandTimeout: undefined, socketTimeout: undefined };
    expect(redis.clients[1]?.overrides).toEqual([[], { redisOptions: patient }]);
  });
});

/** The packages that are installed, each with what it was asked to make. */
function packages(...installed: ('ioredis' | 'redis')[]) {
  const redis = new FakeRedis();
  const made: unknown[] = [];
  const nodeRedis = new NodeRedisFake();
  const modules: Readonly<Record<string, unknown>> = {
    ioredis: {
      Redis: function Redis(...args: unknown[]) {
        made.push(['ioredis', ...args]);
        return redis.connect();
      },
    },
    redis: {
      createClient(...args: unknown[]) {
        made.push(['redis', ...args]);
        return nodeRedis;
      },
    },
  };
  function load(name: string): unknown {
    if (installed.includes(name as 'redis')) return modules[name];
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
  }
  return { redis, nodeRedis, made, load };
}

describe('a redis: URL', () => {
  it('makes a client of ioredis if that alone is installed, and closes it with the source', async () => {
    const { load, made, redis } = packages('ioredis');
    const source = redisFromUrl('rediss://pos:hunter2@db.example:6380/3', { load });
    const options = { connectTimeout: 5_000, keepAlive: 10_000, connectionName: 'tillgate', protocol: 2 };
    expect(made).toEqual([['ioredis', 'rediss://pos:hunter2@db.example:6380/3', options]]);
    expect(() => redis.clients[0]?.emit('error', new Error('gone'))).not.toThrow();
    await source.append?.([['pos', 5]]);
    expect((await source.reader().next(0)).changes).toEqual([['pos', 5]]);
    await source.close?.();
    await source.close?.();
    expect(redis.clients.map(({ status }) => status)).toEqual(['end', 'end']);
  });

  it('makes a client of node-redis if both are installed, and survives its first failure', () => {
    const { load, made, nodeRedis } = packages('ioredis', 'redis');
    nodeRedis.connecting = [() => Promise.reject(new Error('ECONNREFUSED'))];
    redisFromUrl('redis://db.example', { load });
    const socket = { connectTimeout: 5_000, keepAlive: true, keepAliveInitialDelay: 10_000 };
    const commandOptions = { timeout: 0 };
    expect(made).toEqual([['redis', { url: 'redis://db.example', socket, name: 'tillgate', commandOptions }]]);
  });

  it.each<[string, boolean, string]>([
    ['', true, 'tillgate:generations'],
    ['?mark=on', true, 'tillgate:generations'],
    ['?mark=off', false, 'tillgate:generations'],
    ['?key=&mark=off', false, 'tillgate:generations'],
    ['?key=shop%3Alog', true, 'shop:log'],
  ])('names the stream and whether it has a mark by its query: %j', async (query, mark, key) => {
    const { load, made, redis } = packages('ioredis');
    const source = redisFromUrl(`redis://db.example/0${query}`, { load });
    expect(source.mark).toBe(mark);
    expect(made).toEqual([['ioredis', 'redis://db.example/0', expect.any(Object)]]);
    await source.append?.([['pos', 5]]);
    expect(redis.asked.at(-1)?.slice(0, 2)).toEqual(['XADD', key]);
    await source.close?.();
  });

  it.each([
    ['redis://pos:hunter2@db.example?mark=no', 'generations: "mark" in the redis: URL must be on or off'],
    ['redis://pos:hunter2@[::', 'generations: the redis: URL is not valid'],
  ])('is refused without being repeated: %s', (url, message) => {
    expect(() => generationsFromUrl(url)).toThrow(new TypeError(message));
    expect(() => connectToRedis(url, { name: 'n', needs: 'n', load: packages().load })).toThrow(new TypeError(message));
  });

  it('does not use a client of an older version, and says which is installed and which is needed', () => {
    const older = (name: string): unknown => (name.endsWith('/package.json') ? { version: '4.7.1' } : {});
    expect(() => redisFromUrl('redis://db.example', { load: older })).toThrow(
      new TypeError(
        'generations: a redis: URL needs the package redis or ioredis (redis 4.7.1 is installed, 5 or 6 is needed; ' +
          'ioredis 4.7.1 is installed, 5 or 6 is needed): npm install redis@6',
      ),
    );
  });

  it('says what to install when neither package is', () => {
    expect(() => redisFromUrl('redis://pos:hunter2@db.example', { load: packages().load })).toThrow(
      new TypeError(
        'generations: a redis: URL needs the package redis or ioredis (redis is not installed; ioredis is not installed): npm install redis@6',
      ),
    );
  });

  it.each<[string, unknown]>([
    ['an error without a code', new SyntaxError('broken')],
    ['an error of another code', Object.assign(new Error('broken'), { code: 'ERR_REQUIRE_ESM' })],
    ['a text', 'broken'],
  ])('does not take a package that fails with %s for one that is missing', (_what, error) => {
    const load = (): never => {
      throw error;
    };
    let thrown: unknown;
    try {
      redisFromUrl('redis://db.example', { load });
    } catch (caught) {
      thrown = caught;
    }
    expect(thrown).toBe(error);
  });
});
