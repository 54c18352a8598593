import { EventEmitter } from 'node:events';
import { generationsFromUrl } from '../../../src/generation/from-url';
import { connectToRedis } from '../../../src/generation/redis/connection';
import { sourceFromUrl as redisFromUrl } from '../../../src/generation/redis/source';
import { FakeRedis } from './fake';

/** The packages that are installed, each with what it was asked to make. */
function packages(...installed: ('ioredis' | 'redis')[]) {
  const redis = new FakeRedis();
  const made: unknown[] = [];
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
        return nodeRedis(redis);
      },
    },
  };
  function load(name: string): unknown {
    if (installed.includes(name as 'redis')) return modules[name];
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
  }
  return { redis, made, load };
}

/** A connection shaped as node-redis is. */
function nodeRedis(redis: FakeRedis): object {
  const client = redis.connect();
  return Object.assign(new EventEmitter(), {
    isReady: true,
    connect: () => Promise.reject(new Error('ECONNREFUSED')),
    destroy: () => client.disconnect(),
    sendCommand: ([command = '', ...args]: string[]) => client.call(command, ...args),
  });
}

describe('a redis: address', () => {
  it('makes an ioredis client when that is there alone', async () => {
    const { load, made, redis } = packages('ioredis');
    const source = redisFromUrl('rediss://pos:hunter2@db.example:6380/3', { load });
    const options = { connectTimeout: 5_000, keepAlive: 10_000, connectionName: 'tillgate', protocol: 2 };
    expect(made).toEqual([['ioredis', 'rediss://pos:hunter2@db.example:6380/3', options]]);
    // An event without a listener would end the process.
    expect(() => redis.clients[0]?.emit('error', new Error('gone'))).not.toThrow();
    await source.publish?.('pos', 5);
    expect([...redis.scores]).toEqual([['pos', '5']]);
    const ended = jest.fn();
    redis.clients[0]?.on('end', ended);
    await source.close?.();
    await source.close?.();
    expect([redis.clients.map(({ status }) => status), ended.mock.calls]).toEqual([['end'], [[]]]);
  });

  it('makes a node-redis client when both packages are there, and survives its first failure', async () => {
    const { load, made, redis } = packages('ioredis', 'redis');
    const source = redisFromUrl('redis://db.example', { load });
    const socket = { connectTimeout: 5_000, keepAlive: true, keepAliveInitialDelay: 10_000 };
    const commandOptions = { timeout: 0 };
    expect(made).toEqual([['redis', { url: 'redis://db.example', socket, name: 'tillgate', commandOptions }]]);
    redis.write('pos', 5);
    expect([...(await source.read(0)).floors]).toEqual([['pos', 5]]);
    await source.close?.();
    expect(redis.clients.map(({ status }) => status)).toEqual(['end']);
  });

  it('makes a connection for other commands too, which survives its failures', () => {
    const { load, redis } = packages('ioredis');
    const purpose = { name: 'rates', needs: 'rate limits need', load };
    expect(() => connectToRedis('redis://pos:hunter2@[', purpose)).toThrow(
      new TypeError('generations: the redis: URL is not valid'),
    );
    connectToRedis('redis://db.example', purpose);
    expect(() => redis.clients[0]?.emit('error', new Error('gone'))).not.toThrow();
  });

  it.each<[string, unknown]>([
    ['an error without a code', new Error('broken')],
    ['an error of another code', Object.assign(new Error('broken'), { code: 'ERR_REQUIRE_ESM' })],
    ['no error', { code: 'ERR_REQUIRE_ESM' }],
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

  it('says what to install when neither is there', () => {
    const { load } = packages();
    expect(() => redisFromUrl('redis://pos:hunter2@db.example', { load })).toThrow(
      new TypeError(
        'generations: a redis: URL needs the package redis or ioredis, and neither is installed: npm install redis@6',
      ),
    );
  });

  it('does not hide that a package is broken', () => {
    const load = (): never => {
      throw new SyntaxError('Unexpected token');
    };
    expect(() => redisFromUrl('redis://db.example', { load })).toThrow(SyntaxError);
  });

  it('names the sorted set by its query, and keeps the rest of it', async () => {
    const { load, made, redis } = packages('ioredis');
    const source = redisFromUrl('redis://db.example/0?key=shop%3Afloors&family=6', { load });
    expect(made).toEqual([['ioredis', 'redis://db.example/0?family=6', expect.any(Object)]]);
    const wake = jest.fn();
    await source.watch?.(wake);
    redis.write('pos', 5, 'shop:floors');
    expect(wake).toHaveBeenCalledTimes(1);
    await source.close?.();
  });

  it.each<[string, boolean]>([
    ['', true],
    ['?sentinel=on', true],
    ['?sentinel=off', false],
    ['?key=&sentinel=off', false],
  ])('says by its query whether there is a sentinel: %j', async (query, expected) => {
    const { load, made, redis } = packages('ioredis');
    const source = redisFromUrl(`redis://db.example/0${query}`, { load });
    expect('sentinel' in source).toBe(expected);
    expect(made).toEqual([['ioredis', 'redis://db.example/0', expect.any(Object)]]);
    await source.watch?.(() => undefined);
    expect(redis.clients[1]?.channel).toBe('tillgate:generations');
    await source.close?.();
  });

  it('is refused when its query says something else of the sentinel', () => {
    const { load } = packages('ioredis');
    expect(() => redisFromUrl('redis://pos:hunter2@db.example?sentinel=no', { load })).toThrow(
      new TypeError('generations: "sentinel" in the redis: URL must be on or off'),
    );
  });

  it('is refused without being repeated when it is not a URL', () => {
    expect(() => generationsFromUrl('redis://pos:hunter2@[::')).toThrow(
      new TypeError('generations: the redis: URL is not valid'),
    );
  });
});
