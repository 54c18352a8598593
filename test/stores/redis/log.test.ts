import { redisGenerations } from '../../../src/stores/redis/log';
import type { RedisGenerationsOptions } from '../../../src/stores/redis/log';
import type { LogReader } from '../../../src/gate/generation/log';
import { SourceError } from '../../../src/gate/generation/log';
import { fakeTime } from '../../support/fake-time';
import { START } from '../../gate/generation/fixtures';
import { FakeRedis } from './fake';

const MARK = { completeMs: 5, keptMs: 6 };

function open(options: Partial<RedisGenerationsOptions> = {}) {
  const [time, redis] = [fakeTime(START), new FakeRedis()];
  const client = redis.connect();
  const source = redisGenerations({ client, clock: time.clock, schedule: time.schedule, ...options });
  return { time, redis, client, source, append: source.append.bind(source) };
}

const LATER_FORMAT =
  'the log is in a later format, which this version of Tillgate cannot read: update this process (UPGRADE.md)';

/** Calls `next()` until the end of the log: the client ids that it returned, and each mark as `epoch:unit`. */
async function readToEnd(reader: LogReader): Promise<string> {
  const read: string[] = [];
  for (let calls = 0; calls < 20; calls++) {
    const { changes, mark, end } = await reader.next(0);
    read.push(...changes.map(([clientId]) => clientId), ...(mark ? [`${mark.epoch}:${mark.unit}`] : []));
    if (end) return read.join(' ');
  }
  throw new Error('no end');
}

/** The same nested lists, with buffers in the place of texts. */
function inBuffers(value: unknown): unknown {
  return Array.isArray(value) ? value.map(inBuffers) : Buffer.from(value as string);
}

/** More entries than one command returns. */
function fill(redis: FakeRedis): void {
  for (let n = 0; n < 2_000; n++) redis.change('many', n);
}

describe('a reader of redisGenerations', () => {
  it('blocks on a connection of its own, which has no time limit of the client, and not at all for a wait of 0', async () => {
    const { redis, source } = open();
    const reader = source.reader();
    await reader.next(0);
    await reader.next(250.5);
    expect(redis.asked.filter(([name]) => name === 'XREAD')).toEqual([
      ['XREAD', 'COUNT', '2000', 'STREAMS', 'tillgate:generations', '0-0'],
      ['XREAD', 'COUNT', '2000', 'BLOCK', '251', 'STREAMS', 'tillgate:generations', '0-0'],
    ]);
    expect(redis.clients.map(({ overrides }) => overrides)).toEqual([
      undefined,
      [{ commandTimeout: undefined, socketTimeout: undefined }],
    ]);
  });

  it('refuses a log in a later format, before and after it was read', async () => {
    const { redis, source } = open();
    redis.mark('one', 1);
    const reader = source.reader();
    await readToEnd(reader);
    redis.mark('one', 2, undefined, '2');
    for (const one of [reader, source.reader(), reader]) await expect(one.next(0)).rejects.toThrow(LATER_FORMAT);
  });

  it('returns a mark when it has read what the mark covers', async () => {
    const { redis, source } = open();
    redis.change('pos', 1);
    redis.mark('one', 1);
    const reader = source.reader();
    expect(await readToEnd(reader)).toBe('pos one:1');
    redis.change('kiosk', 1);
    redis.mark('one', 2);
    expect(await readToEnd(reader)).toBe('kiosk one:2');
    expect(await readToEnd(reader)).toBe('one:2');
  });

  it('does not count a mark of a server that is ahead of the one whose stream it reads', async () => {
    const { redis, source } = open();
    redis.change('pos', 1);
    const reader = source.reader();
    redis.mark('one', 2, '7-0');
    expect(await readToEnd(reader)).toBe('pos');
    redis.change('kiosk', 1, '7-0');
    expect(await readToEnd(reader)).toBe('kiosk one:2');
  });

  it('starts again at the oldest entry when the mark is of another epoch, or is an older one', async () => {
    const { redis, source } = open();
    redis.change('pos', 1);
    redis.mark('one', 2);
    const reader = source.reader();
    expect(await readToEnd(reader)).toBe('pos one:2');
    redis.change('kiosk', 1);
    redis.mark('two', 3);
    expect(await readToEnd(reader)).toBe('pos kiosk two:3');
    redis.mark('two', 2);
    expect(await readToEnd(reader)).toBe('pos kiosk two:2');
  });

  it('starts again after a part of its wait that differs between processes, and reads nothing before', async () => {
    const { redis, source, time } = open();
    redis.change('pos', 1);
    redis.mark('one', 1);
    const reader = source.reader();
    await readToEnd(reader);
    redis.change('kiosk', 1);
    redis.mark('two', 1);
    redis.take();
    let read: string[] | undefined;
    void reader.next(5_000).then(({ changes }) => (read = changes.map(([clientId]) => clientId)));
    await time.advance(0);
    expect([redis.take(), read]).toEqual(['HMGET', undefined]);
    await time.advance(5_000);
    expect([redis.take(), read]).toEqual(['HMGET XREAD', ['pos', 'kiosk']]);
  });

  it('starts again at another time than others when a new epoch begins for all of them', async () => {
    const { redis, source, time } = open();
    redis.change('pos', 1);
    redis.mark('one', 1);
    const readers = Array.from({ length: 200 }, () => source.reader());
    for (const reader of readers) await readToEnd(reader);
    redis.mark('two', 1);
    redis.take();
    const reading = Promise.all(readers.map((reader) => reader.next(5_000)));
    const perSecond: number[] = [];
    for (let second = 0; second < 5; second++) {
      await time.advance(1_000);
      perSecond.push(redis.take().match(/XREAD/g)?.length ?? 0);
    }
    expect((await reading).map(({ changes }) => changes)).toEqual(readers.map(() => [['pos', 1]]));
    expect(perSecond.reduce((sum, count) => sum + count, 0)).toBe(200);
    // 40 in each, more or less; fewer than 10 or more than 100 do not come about by chance.
    for (const count of perSecond) expect([count >= 10, count <= 100]).toEqual([true, true]);
  });

  it('finishes its pass when the epoch changes meanwhile, and then does another one', async () => {
    const { redis, source } = open();
    fill(redis);
    redis.change('last', 1);
    redis.mark('one', 1);
    const reader = source.reader();
    expect((await reader.next(0)).end).toBe(false);
    // Written by a server whose clock lags: before the position.
    redis.change('late', 1, '7-1');
    redis.entries.sort(([one], [other]) => parseInt(one) - parseInt(other));
    redis.mark('two', 1);
    expect(await readToEnd(reader)).toBe('last');
    expect(await readToEnd(reader)).toMatch(/^(many )+late (many )+last two:1$/);
  });

  it('gets to the end also where each of its reads meets another epoch', async () => {
    const { redis, source } = open();
    for (let n = 0; n < 3; n++) fill(redis);
    const reader = source.reader();
    const ends: boolean[] = [];
    for (let epoch = 0; epoch < 12; epoch++) {
      redis.mark(`epoch-${epoch}`, 1);
      ends.push((await reader.next(0)).end);
    }
    expect(ends.filter(Boolean).length).toBeGreaterThanOrEqual(3);
  });

  it('reads no mark where no publisher keeps one', async () => {
    const { redis, source } = open({ mark: false });
    redis.change('pos', 1);
    redis.mark('one', 1);
    expect(await readToEnd(source.reader())).toBe('pos');
    expect(redis.take()).not.toContain('HMGET');
  });

  it.each([
    ['wiped', []],
    ['of lower ids', ['3-0']],
    ['of a lower number in the same ms', ['50-2']],
  ])('starts again when the log ends before its position: %s', async (_, ids) => {
    const { redis, source } = open();
    redis.change('pos', 1, '50-10');
    const reader = source.reader();
    expect(await readToEnd(reader)).toBe('pos');
    expect(await readToEnd(reader)).toBe('');
    redis.entries = [];
    for (const id of ids) redis.change('back', 1, id);
    expect(await readToEnd(reader)).toBe(ids.length === 0 ? '' : 'back');
  });

  it.each<[string, (entries: readonly unknown[]) => unknown]>([
    ['a map', (entries) => new Map([['tillgate:generations', entries]])],
    ['an object', (entries) => ({ 'tillgate:generations': entries })],
    ['a flat list', (entries) => ['tillgate:generations', entries]],
    ['buffers', (entries) => inBuffers([['k', entries]])],
  ])('understands a client that returns %s', async (_, form) => {
    const { redis, source } = open();
    redis.formOfRead = form;
    redis.change('pos', 1);
    redis.mark('one', 1);
    const reader = source.reader();
    expect(await readToEnd(reader)).toBe('pos one:1');
    expect(await readToEnd(reader)).toBe('one:1');
  });

  it('rejects a reply that is not a list of entries, and goes on', async () => {
    const { redis, source } = open();
    redis.formOfRead = () => ['?'];
    redis.change('pos', 1);
    const reader = source.reader();
    await expect(reader.next(0)).rejects.toThrow(new SourceError('Redis: the reply is not a list of entries'));
    redis.formOfRead = (entries) => [['k', entries]];
    expect(await readToEnd(reader)).toBe('pos');
  });

  it('finds fields in any order among others, and hands out what is not a change as one that is skipped', async () => {
    const { redis, source } = open();
    redis.add(['by', 'console', 'generation', '7', 'client_id', 'pos']);
    redis.add(['client_id', 'pos', 'generation', '1.5']);
    redis.add(['other', 'one']);
    expect((await source.reader().next(0)).changes).toEqual([
      ['pos', 7],
      ['pos', undefined],
      [undefined, undefined],
    ]);
  });

  it('gets another connection when one does not respond, and says what the silent one has reported', async () => {
    const { redis, source, time } = open({ timeoutMs: 300 });
    redis.change('pos', 1);
    redis.silent.add('XREAD');
    const reader = source.reader();
    const first = reader.next(1_000).catch(String);
    await time.advance(0);
    redis.clients[1]?.emit('error', Object.assign(new Error('to 10.0.0.7'), { code: 'ECONNRESET' }));
    await time.advance(1_299);
    expect(redis.clients).toHaveLength(2);
    await time.advance(1);
    expect(await first).toBe(
      'SourceError: Redis: XREAD: no response within 300 ms; the connection failed: Error (ECONNRESET)',
    );
    expect(redis.clients.map(({ status }) => status)).toEqual(['ready', 'end', 'ready']);
    redis.silent.clear();
    expect(await readToEnd(reader)).toBe('pos');
  });

  it('ends with close(), of the reader or of the source', async () => {
    const { redis, source } = open();
    const [first, second] = [source.reader(), source.reader()];
    await Promise.all([first.next(0), second.next(0)]);
    redis.silent.add('XREAD');
    const [one, other] = [first.next(60_000).catch(String), second.next(60_000).catch(String)];
    first.close();
    expect(await one).toBe('SourceError: the reader is closed');
    await source.close?.();
    expect(await other).toBe('SourceError: the reader is closed');
    await expect(second.next(0)).rejects.toThrow('the reader is closed');
    expect(redis.clients.map(({ status }) => status)).toEqual(['ready', 'end', 'end']);
  });
});

describe('append() of redisGenerations', () => {
  it('sends one XADD for each change', async () => {
    const { redis, append } = open({ key: 'shop' });
    const changes = [['pos', 1] as const, ['pos *', 2] as const];
    expect(await append(changes)).toBeUndefined();
    expect(redis.asked.filter(([name]) => name === 'XADD')).toEqual([
      ['XADD', 'shop', '*', 'client_id', 'pos', 'generation', '1'],
      ['XADD', 'shop', '*', 'client_id', 'pos *', 'generation', '2'],
    ]);
  });

  it('sends a unit as one script on stream and mark, and returns the mark that the log has then', async () => {
    const { redis, append } = open();
    redis.replies.set('EVAL', ['one', '3', '5', '6', '0-0']);
    const expected = { epoch: 'one', unit: 2, ...MARK };
    const mark = { ...expected, unit: 3 };
    expect(await append([['pos', 7]], { expected, mark })).toEqual(mark);
    redis.replies.set('EVAL', []);
    expect(await append([], { expected: undefined, mark })).toBeUndefined();
    const sent = redis.asked.filter(([name]) => name === 'EVAL').map(([, , ...rest]) => rest);
    const keys = ['2', 'tillgate:generations', '{tillgate:generations}:mark'];
    expect(sent).toEqual([
      [...keys, 'one', '2', 'one', '3', '5', '6', String(START), 'pos', '7'],
      [...keys, '', '', 'one', '3', '5', '6', String(START)],
    ]);
    redis.replies.set('EVAL', ['one', '3', '5', '6', '0-0', '2']);
    await expect(append([], { expected, mark })).rejects.toThrow(LATER_FORMAT);
    for (const reply of ['OK', ['one', 'x', '5', '6', '0-0']]) {
      redis.replies.set('EVAL', reply);
      await expect(append([], { expected, mark })).rejects.toThrow('Redis: the reply is not the fields of a mark');
    }
  });

  it.each([
    ['shop', '{shop}:mark'],
    ['{shop}:log', '{shop}:log:mark'],
  ])('keeps the mark of %s at %s, in the same slot of a cluster', async (key, markKey) => {
    const { redis, source } = open({ key });
    await source.reader().next(0);
    expect(redis.asked.find(([name]) => name === 'HMGET')?.[1]).toBe(markKey);
  });

  it('reports a silent connection for every command that was pending on it', async () => {
    const { redis, append, time, client } = open();
    redis.silent.add('XADD');
    const appends = [append([['pos', 1]]).catch(String)];
    await time.advance(100);
    appends.push(append([['pos', 2]]).catch(String));
    client.emit('error', Object.assign(new Error(), { code: 'ETIMEDOUT' }));
    await time.advance(5_000);
    expect(await appends[0]).toBe(
      'SourceError: Redis: XADD: no response within 5000 ms; the connection failed: Error (ETIMEDOUT)',
    );
    redis.silent.clear();
    await append([['pos', 3]]);
    expect(redis.clients.map(({ status }) => status)).toEqual(['ready', 'ready']);
  });

  it.each<[string, RegExp]>([
    ["NOPERM User x has no permissions to run the 'xadd' command", /^Redis: XADD: the user lacks a permission: XREAD/],
    ["READONLY You can't write against a replica", /^Redis: XADD: this server is a replica; use .* \(READONLY\)$/],
    ["ERR Error running script (call to f_1): @user_script:6: -READONLY You can't write", /this server is a replica/],
    ['WRONGTYPE Operation against a key', /the key does not hold a stream: delete it/],
    ['MOVED 3999 127.0.0.1:6381', /give redisGenerations\(\) a cluster client \(MOVED\)$/],
    ['constructor is hunter2', /^Redis: XADD: Error$/],
  ])('says what can be done about %j, and nothing else of it', async (message, expected) => {
    const { redis, append } = open();
    redis.refused.set('XADD', new Error(message));
    const failure = (await append([['pos', 1]]).catch((error: unknown) => error)) as SourceError;
    expect(failure).toBeInstanceOf(SourceError);
    expect(failure.message).toMatch(expected);
    expect(failure.message).not.toMatch(/hunter2|127\.0/);
  });
});

describe('redisGenerations()', () => {
  it('leaves the client of the caller open', async () => {
    const { source, client } = open();
    await source.close?.();
    expect(client.status).toBe('ready');
  });

  it.each<[object, string]>([
    [{ client: {} }, 'option "client" must be a client of ioredis or of redis (node-redis), got an object'],
    [{ client: undefined }, 'option "client" must be a client of ioredis or of redis (node-redis), got undefined'],
    [{ key: '' }, 'option "key" must be a non-empty string, got ""'],
    [{ sentinel: false }, 'unknown option "sentinel"; known are'],
    [{ mark: 'off' }, 'option "mark" must be true or false, got "off"'],
    [{ timeoutMs: 0 }, 'option "timeoutMs" must be a number of milliseconds from 1 to 600000, got 0'],
  ])('refuses %j', (options, message) => {
    const client = new FakeRedis().connect();
    const start = (): unknown => redisGenerations({ client, ...options });
    expect(start).toThrow(TypeError);
    expect(start).toThrow(`redisGenerations(): ${message}`);
  });
});
