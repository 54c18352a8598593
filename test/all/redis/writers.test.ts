import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createRequire } from 'node:module';
import { redisFromUrl } from '../../../src/stores/redis/log';
import { ends, startAuthorizationServer, startProcess, untilCurrent, verdict } from '../faults/generation-scene';
import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';
import { byIoredis, byNodeRedis, openSource } from './fixtures';

const run = promisify(execFile);
const KEY = 'tillgate:generations';
const MARK_KEY = '{tillgate:generations}:mark';

let redis: RedisServer;
const opened = ends();

beforeAll(async () => {
  redis = await startRedis();
});

afterEach(async () => {
  await opened.run();
  await redis.command('FLUSHALL');
});

afterAll(() => redis.stop());

async function open(options = {}, connect = byIoredis()) {
  const source = await openSource(connect, redis.url, options);
  opened.add(() => source.close());
  return source;
}

/** A process whose log has no mark. */
async function process() {
  const follower = startProcess((await open({ mark: false })).source);
  opened.add(() => follower.close());
  await follower.ready();
  return follower;
}

describe('the record that any program can write', () => {
  it('reaches a process that waits for it: redis-cli', async () => {
    const reader = await process();
    const generation = String(Date.now());
    const args = ['XADD', KEY, '*', 'client_id', 'pos-17', 'generation', generation];
    await run('redis-cli', ['-p', String(redis.port), ...args]);
    await eventually('the change', () => verdict(reader, 'pos-17', Number(generation) - 1) === 'superseded', 4_000);
  });

  it('reaches a process that waits for it, and trims what is old: Python', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tillgate-python-'));
    opened.add(() => rm(folder, { recursive: true }));
    await run('python3', ['-m', 'venv', folder]);
    await run(join(folder, 'bin/pip'), ['install', '-q', 'redis']);
    const reader = await process();
    for (let n = 1; n <= 500; n++) await redis.command('XADD', KEY, `1-${n}`, 'client_id', 'x', 'generation', '5');
    const script = `
import time, redis
now = int(time.time() * 1000)
redis.Redis.from_url("${redis.url}").xadd(
    "tillgate:generations", {"client_id": "pos-17", "generation": now}, minid=now - 90_000_000)
print(now)
`;
    const { stdout } = await run(join(folder, 'bin/python'), ['-c', script]);
    await eventually('the change', () => verdict(reader, 'pos-17', Number(stdout) - 1) === 'superseded', 4_000);
    expect(Number(await redis.command('XLEN', KEY))).toBeLessThanOrEqual(100);
  });

  it('locks no client out when it is in microseconds, and stops no other change when it is not a change', async () => {
    const reader = await process();
    const now = Date.now();
    for (const fields of [
      ['client_id', 'pos', 'generation', String(now * 1000)],
      ['client_id', 'pos', 'generation', 'soon'],
      ['clientid', 'pos'],
      ['client_id', 'kiosk', 'generation', String(now)],
    ]) {
      await redis.command('XADD', KEY, '*', ...fields);
    }
    await eventually('the last one', () => verdict(reader, 'kiosk', now - 1) === 'superseded');
    expect(verdict(reader, 'pos', now)).toBe('accepted');
  });
});

describe('a stream with a mark', () => {
  const unit = (completeMs: number) => ({
    expected: undefined,
    mark: { epoch: 'e', unit: 1, completeMs, keptMs: 1_000 },
  });

  it('has it in a key of its own, which names the last entry; both are lost together', async () => {
    const { source } = await open();
    const log = startAuthorizationServer(source);
    opened.add(() => log.publisher.close());
    await log.publisher.ready();
    await log.change('pos');
    const [last] = (await redis.command('XREVRANGE', KEY, '+', '-', 'COUNT', '1')) as [string, string[]][];
    const epoch = await redis.command('HGET', MARK_KEY, 'epoch');
    expect([last?.[1][1], await redis.command('HGET', MARK_KEY, 'last')]).toEqual(['pos', last?.[0]]);
    const cold = async (): Promise<string> => {
      const started = startProcess((await open()).source, { pollMs: 50 });
      opened.add(() => started.close());
      await started.ready();
      return verdict(started, 'pos', (log.record.get('pos') as number) - 1);
    };
    // The stream alone: its mark must not call what is left complete.
    await redis.command('DEL', KEY);
    expect(await cold()).toBe('superseded');
    expect(await redis.command('HGET', MARK_KEY, 'epoch')).not.toBe(epoch);
  });

  it('gets no entry that is older than the publisher says, whatever the clock of the server', async () => {
    const aheadMs = 3_600_000;
    const { source } = await open({ clock: () => Date.now() + aheadMs });
    await source.append?.([['pos', 5]], unit(Date.now()));
    await source.append?.([['kiosk', 5]], { expected: unit(0).mark, mark: { ...unit(Date.now()).mark, unit: 2 } });
    const entries = (await redis.command('XRANGE', KEY, '-', '+')) as [string, string[]][];
    expect(entries.map(([, fields]) => fields[1])).toEqual(['pos', 'kiosk']);
    for (const [id] of entries) expect(parseInt(id)).toBeGreaterThan(Date.now() + aheadMs - 60_000);
  });

  it('is trimmed by a unit to what is kept, a hundred entries at a time', async () => {
    for (let n = 1; n <= 500; n++) await redis.command('XADD', KEY, `${n}-1`, 'client_id', 'x', 'generation', '5');
    const { source } = await open();
    const now = Date.now();
    await redis.command('XADD', KEY, '*', 'client_id', 'new', 'generation', '5');
    // A publisher whose clock is behind trims nothing that it still needs.
    await source.append?.([], unit(1_300));
    expect(Number(await redis.command('XLEN', KEY))).toBeGreaterThanOrEqual(200);
    await source.append?.([], { ...unit(now), expected: unit(1).mark, mark: { ...unit(now).mark, unit: 2 } });
    expect(Number(await redis.command('XLEN', KEY))).toBeLessThanOrEqual(102);
  });
});

describe('a key that does not hold a stream', () => {
  it('is recognized by publisher and process, which say what to do', async () => {
    await redis.command('ZADD', KEY, '1790000000123', 'pos');
    const { source } = await open({}, byNodeRedis());
    const shop = startAuthorizationServer(source);
    opened.add(() => shop.publisher.close());
    const reader = startProcess(source);
    opened.add(() => reader.close());
    await reader.settled();
    await eventually('the publisher failed', () => shop.publisher.status().state === 'failing');
    const advice = /the key does not hold a stream: delete it, and its publisher writes the log, or use another key/;
    expect(reader.status().lastError).toMatch(advice);
    expect(shop.publisher.status().lastError).toMatch(advice);
    await redis.command('DEL', KEY);
    await shop.change('pos');
    await untilCurrent(reader, shop.record);
  });
});

describe.each([
  ['ioredis', ['ioredis']],
  ['redis', ['redis']],
])('a redis: URL with credentials, by %s', (_, packages) => {
  const installed = createRequire(__filename);
  function load(name: string): unknown {
    if (packages.includes(name)) return installed(name);
    throw Object.assign(new Error('not installed'), { code: 'MODULE_NOT_FOUND' });
  }
  const urlOf = (user: string, password = 's3cr%25et'): string =>
    `redis://${user}:${password}@127.0.0.1:${redis.port}/0?key=shop`;
  const common = 'reset on >s3cr%et ~shop ~{shop}:mark +client +hello +ping +select'.split(' ');
  const acl = (user: string, ...rules: string[]): Promise<unknown> =>
    redis.command('ACL', 'SETUSER', user, ...common, ...rules);
  const from = (user: string, password?: string) => {
    const source = redisFromUrl(urlOf(user, password), { load });
    opened.add(() => source.close?.());
    return source;
  };

  it('reads, appends and keeps the mark with no more permissions than are named', async () => {
    await acl('reader', '+xread', '+xrevrange', '+hmget');
    await acl('writer', '+xadd');
    await acl('publisher', '+xread', '+xrevrange', '+hmget', '+xadd', '+eval', '+hset', '+xtrim', '+time');
    const shop = startAuthorizationServer(from('publisher'));
    opened.add(() => shop.publisher.close());
    await shop.publisher.ready();
    await from('writer').append?.([['pos', 5]]);
    const reader = from('reader').reader();
    expect((await reader.next(0)).changes).toEqual([['pos', 5]]);
    await expect(from('reader').append?.([['pos', 6]])).rejects.toThrow(/^Redis: XADD: the user lacks a permission/);
    await expect(from('writer').reader().next(0)).rejects.toThrow(/^Redis: HMGET: the user lacks a permission/);
    const unit = { expected: undefined, mark: { epoch: 'e', unit: 1, completeMs: 5, keptMs: 5 } };
    await expect(from('writer').append?.([], unit)).rejects.toThrow(/^Redis: EVAL: the user lacks a permission/);
  });

  it('says nothing of a password that is wrong', async () => {
    await acl('reader', '+xread', '+xrevrange', '+hmget');
    const failure = await from('reader', 'hunter2').reader().next(0).catch(String);
    expect(failure).toMatch(/^SourceError: Redis: /);
    expect(failure).not.toContain('hunter2');
  });
});

describe('a server that does not append', () => {
  it('is named by what it is: a replica, out of memory', async () => {
    const replica = await startRedis({ replicaOf: redis.port });
    opened.add(() => replica.stop());
    const onReplica = await openSource(byIoredis(), replica.url);
    opened.add(() => onReplica.close());
    const unit = { expected: undefined, mark: { epoch: 'e', unit: 1, completeMs: 5, keptMs: 5 } };
    for (const given of [undefined, unit]) {
      await expect(onReplica.source.append?.([['pos', 5]], given)).rejects.toThrow(
        /this server is a replica; .*\(READONLY\)$/,
      );
    }
    const full = await startRedis({ settings: ['--maxmemory', '100kb', '--maxmemory-policy', 'noeviction'] });
    opened.add(() => full.stop());
    const onFull = await openSource(byNodeRedis(), full.url);
    opened.add(() => onFull.close());
    for (const given of [undefined, unit]) {
      await expect(onFull.source.append?.([['pos', 5]], given)).rejects.toThrow(
        /the server has no memory left \(OOM\)$/,
      );
    }
  });
});
