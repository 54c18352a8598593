import { redisGenerations } from '../../../src/generation/redis/source';
import type { RedisGenerationsOptions } from '../../../src/generation/redis/source';
import { settle } from '../../support/fake-time';
import { START } from '../fixtures';
import { FakeRedis } from './fake';
import { open } from './scene';

describe('a read', () => {
  it('refuses a replica, and asks no more where ROLE is not permitted', async () => {
    const { source, redis } = open();
    redis.role = 'slave';
    await expect(source.read(0)).rejects.toThrow('this server is a replica; use the URL of the primary');
    redis.refused.set('ROLE', new Error('NOPERM'));
    await expect(source.read(0)).resolves.toBeDefined();
  });

  it('takes every page of the set', async () => {
    const { source, redis } = open();
    const pages = new Map([
      ['0', ['17', ['a', '1', 'b', '2']]],
      ['17', ['4', []]],
      ['4', ['0', ['c', '3']]],
    ]);
    const reply = redis.reply.bind(redis);
    // Of one score, so not to be read in windows.
    const range = Array.from({ length: 2_000 }, () => ['a', '1']).flat();
    redis.reply = (command, args) =>
      command === 'ZSCAN' ? pages.get(args[1] ?? '') : command === 'ZRANGE' ? range : reply(command, args);
    const floors = new Map((await source.read(0)).floors);
    expect([...floors]).toEqual([
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ]);
  });

  it('names a thousand clients at most in one command', async () => {
    const { redis, source, watch } = open();
    const { nowMs } = await watch();
    const named: number[] = [];
    const reply = redis.reply.bind(redis);
    redis.reply = (command, args) => {
      if (command === 'ZMSCORE') named.push(args.length - 1);
      return reply(command, args);
    };
    for (let n = 0; n < 2_001; n++) redis.write(`client-${n}`, START + n);
    expect([...(await source.read(nowMs)).floors]).toHaveLength(2_001);
    // The last ones are the sentinel and the horizon.
    expect(named).toEqual([1_000, 1_000, 3]);
  });

  it.each<[string, unknown, string | undefined]>([
    ['ROLE', 'OK', undefined],
    ['ZCOUNT', 'many', 'Redis: ZCOUNT: the reply is not a number'],
    ['ZSCAN', 'OK', 'Redis: ZSCAN: the reply is not a page'],
    ['ZSCAN', ['0', 'OK'], 'Redis: ZSCAN: the reply is not a page'],
    ['ZMSCORE', 'OK', 'Redis: ZMSCORE: the reply has another number of scores than requested'],
    ['ZMSCORE', [], 'Redis: ZMSCORE: the reply has another number of scores than requested'],
    ['ZMSCORE', { length: 1 }, 'Redis: ZMSCORE: the reply has another number of scores than requested'],
  ])('of which %s gets the reply %j ends with %s', async (command, odd, message) => {
    const { source, redis, watch } = open();
    const { nowMs } = await watch();
    redis.write('pos', START);
    const reply = redis.reply.bind(redis);
    redis.reply = (name, args) => (name === command ? odd : reply(name, args));
    const reading = source.read(command === 'ZMSCORE' ? nowMs : 0);
    if (message === undefined) await expect(reading).resolves.toBeDefined();
    else await expect(reading).rejects.toThrow(message);
  });

  it('of the sentinel rejects when the reply is not a list', async () => {
    const { source, redis } = open();
    redis.reply = () => 'OK';
    await expect(source.sentinel?.read()).rejects.toThrow('another number of scores than requested');
  });

  it.each(['1.5', 'inf', '-1', 'nan', '9007199254740992'])('rejects when a score is %j', async (score) => {
    const { source, redis, watch } = open();
    const { nowMs } = await watch();
    redis.scores.set('pos', score);
    redis.say('tillgate:generations', 'pos');
    await expect(source.read(0)).rejects.toThrow('the set has a member whose score is not a generation');
    await expect(source.read(nowMs)).rejects.toThrow('the set has a member whose score is not a generation');
  });

  it('rejects when the connection broke on the way: the rest would be of another server', async () => {
    const { source, client, redis } = open();
    redis.whenAsked = (command) => {
      if (command === 'ZSCAN') client.cut();
    };
    await expect(source.read(0)).rejects.toThrow('Redis: the connection broke during the read');
  });

  it('rejects after close(), as publish() and watch() do', async () => {
    const { source, watch } = open();
    const { lost, wake } = await watch();
    await source.close();
    await source.close();
    await expect(source.read(0)).rejects.toThrow('closed');
    await expect(source.publish('pos', 1)).rejects.toThrow('closed');
    await expect(source.watch(wake)).rejects.toThrow('closed');
    await settle();
    expect(lost).not.toHaveBeenCalled();
  });
});

describe('redisGenerations()', () => {
  it.each([
    [{}, /option "client" must be a client of ioredis or of redis \(node-redis\), got undefined/],
    [{ client: {} }, /got an object/],
    [{ client: { isCluster: true } }, /must be connected to one server, the primary/],
    [{ client: new FakeRedis().connect(), keys: 'x' }, /unknown option "keys"; did you mean "key"/],
    [{ client: new FakeRedis().connect(), key: '' }, /option "key" must be a non-empty string/],
    [
      { client: new FakeRedis().connect(), timeoutMs: 0 },
      /^redisGenerations\(\): option "timeoutMs" must be a number of ms from 1 to 600000, got 0$/,
    ],
    [
      { client: new FakeRedis().connect(), wholeEveryMs: 1 },
      /^redisGenerations\(\): option "wholeEveryMs" must be a number of ms from 1000 to 86400000, got 1$/,
    ],
    [undefined, /^redisGenerations\(\): expected an options object, got undefined$/],
  ])('refuses wrong options (%#)', (options, message) => {
    const make = (): unknown => redisGenerations(options as unknown as RedisGenerationsOptions);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(message);
  });

  it('writes ZADD and then PUBLISH, as any program can', async () => {
    const { source, redis } = open();
    await source.publish('pos', START);
    expect(redis.take()).toBe('ZADD PUBLISH');
  });
});
