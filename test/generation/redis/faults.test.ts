import { redisGenerations } from '../../../src/generation/redis/source';
import type { RedisGenerationsOptions } from '../../../src/generation/redis/source';
import { fakeTime, settle } from '../../support/fake-time';
import { START, keptLog } from '../fixtures';
import { FakeRedis } from './fake';

function open() {
  const time = fakeTime(START);
  const redis = new FakeRedis();
  const client = redis.connect();
  const source = redisGenerations({ client, clock: time.clock, schedule: time.schedule, logger: keptLog() });
  const watch = async () => {
    const [wake, lost] = [jest.fn(), jest.fn()];
    const stop = await source.watch(wake, lost);
    return { wake, lost, stop, subscriber: redis.clients.at(-1)!, nowMs: (await source.read(0)).nowMs };
  };
  return { time, redis, client, source, watch };
}

describe('a subscription', () => {
  it.each(['close', 'end', 'reconnecting', 'error'])('is lost with the event %s, and closed', async (event) => {
    const { watch } = open();
    const { lost, subscriber, wake } = await watch();
    subscriber.emit(event, new Error('gone'));
    subscriber.emit(event, new Error('gone'));
    expect(lost).toHaveBeenCalledTimes(1);
    expect(subscriber.status).toBe('end');
    subscriber.emit('message', 'tillgate:generations', 'pos');
    expect(wake).not.toHaveBeenCalled();
  });

  it('is lost when the connection of the commands breaks: they may now reach another server', async () => {
    const { watch, client, redis, source } = open();
    const { lost, nowMs } = await watch();
    client.cut();
    expect(lost).toHaveBeenCalledTimes(1);
    redis.take();
    await source.read(nowMs);
    expect(redis.take()).toBe('ROLE ZCARD ZSCAN');
  });

  it('is lost when the server does not respond on it for a second; the read goes on with the whole set', async () => {
    const { watch, redis, source, time } = open();
    const { lost, subscriber, nowMs } = await watch();
    subscriber.halfOpen = true;
    redis.write('pos', START);
    const reading = source.read(nowMs);
    await time.advance(999);
    expect(lost).not.toHaveBeenCalled();
    await time.advance(1);
    expect([...(await reading).floors]).toEqual([['pos', START]]);
    expect(String(lost.mock.calls)).toBe('SourceError: Redis: PING: no response within 1000 ms');
  });

  it('that is cut while a read asks it does not count: the read goes on with the whole set', async () => {
    const { watch, redis, source } = open();
    const { subscriber, nowMs } = await watch();
    redis.write('pos', START);
    redis.whenAsked = (command) => {
      if (command === 'PING') queueMicrotask(() => subscriber.cut());
    };
    expect([...(await source.read(nowMs)).floors]).toEqual([['pos', START]]);
  });

  it('is not lost when it is stopped, and its connection is closed', async () => {
    const { watch } = open();
    const { lost, stop, subscriber } = await watch();
    stop();
    expect(subscriber.status).toBe('end');
    expect(lost).not.toHaveBeenCalled();
  });

  it('rejects when it is refused or gets no response, and leaves no connection open', async () => {
    const { source, redis, time } = open();
    redis.refused.set('PING', new Error('NOPERM this user has no permissions'));
    await expect(source.watch(() => undefined)).rejects.toThrow(/^Redis: SUBSCRIBE: the user lacks a permission/);
    redis.refused.clear();
    redis.silent.add('PING');
    const watching = source.watch(() => undefined);
    const refused = expect(watching).rejects.toThrow('Redis: SUBSCRIBE: no response within 5000 ms');
    await time.advance(5_000);
    await refused;
    expect(redis.clients.slice(1).map(({ status }) => status)).toEqual(['end', 'end']);
  });
});

describe('a command', () => {
  it('that gets no response makes the source open another one', async () => {
    const { source, client, redis, time } = open();
    const lost = jest.fn();
    client.halfOpen = true;
    const failing = expect(source.publish('pos', START)).rejects.toThrow('no response within 5000 ms');
    await source.watch(() => undefined, lost);
    await time.advance(5_000);
    await failing;
    expect(String(lost.mock.calls)).toBe('SourceError: Redis: the connection broke: no response');
    await source.publish('pos', START + 1);
    expect([...(await source.read(0)).floors]).toEqual([['pos', START + 1]]);
    // Somebody else's client is left alone; our own is closed.
    expect(client.status).toBe('ready');
    redis.silent.add('ROLE');
    const again = source.read(0);
    await time.advance(5_000);
    await again;
    expect(redis.clients.map(({ status }) => status)).toEqual(['ready', 'end', 'end', 'ready']);
    await source.close();
    expect(redis.clients.map(({ status }) => status)).toEqual(['ready', 'end', 'end', 'end']);
  });

  it('that gets no response says what the connection died of', async () => {
    const { source, client, redis, time } = open();
    redis.silent.add('ZADD').add('PUBLISH');
    client.emit('error', Object.assign(new Error('connect redis://pos:hunter2@db'), { code: 'ECONNREFUSED' }));
    client.emit('close');
    const failing = expect(source.publish('pos', START)).rejects.toThrow(
      'Redis: ZADD: no response within 5000 ms; the connection failed: Error (ECONNREFUSED)',
    );
    await time.advance(5_000);
    await failing;
  });

  it.each([
    ['WRONGTYPE Operation against a key', /^Redis: ZSCAN: the key holds .* \(WRONGTYPE\)$/],
    ['NOAUTH Authentication required.', /needs a password \(NOAUTH\)$/],
    ["ERR unknown command 'ZSCAN' pos:hunter2", /Redis 6\.2 or later is needed \(ERR\)$/],
    ['connect to redis://pos:hunter2@db', /^Redis: ZSCAN: Error$/],
    ['CONSTRUCTOR hunter2', /^Redis: ZSCAN: Error$/],
  ])('that is refused with %j is explained without the words of the server', async (message, expected) => {
    const { source, redis } = open();
    redis.refused.set('ZSCAN', new Error(message));
    await expect(source.read(0)).rejects.toThrow(expected);
  });
});

describe('a read', () => {
  it('refuses a replica, and asks no more where ROLE is not permitted', async () => {
    const { source, redis } = open();
    redis.role = 'slave';
    await expect(source.read(0)).rejects.toThrow('this server is a replica; use the URL of the primary');
    redis.refused.set('ROLE', new Error('NOPERM'));
    await expect(source.read(0)).resolves.toBeDefined();
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
    [{ client: new FakeRedis().connect(), timeoutMs: 0 }, /option "timeoutMs"/],
    [{ client: new FakeRedis().connect(), wholeEveryMs: 1 }, /option "wholeEveryMs"/],
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
