import { Pool } from 'pg';
import { SourceError } from '../../../src/gate/generation/log';
import { settle } from '../../support/fake-time';
import { fakeSource, found } from './fake';
import type { FakePool, Script } from './fake';
import { postgresGenerations, postgresFromUrl } from '../../../src/stores/postgres/log';
import { postgresSchema } from '../../../src/stores/postgres/schema';
import type { PostgresPool } from '../../../src/stores/postgres/connection';

const never = (): Promise<never> => new Promise(() => undefined);

function failing(code: string): Error {
  return Object.assign(new Error('postgres://pos:hunter2@db said no'), { code });
}

function readsOf(pool: FakePool): number {
  return pool.clients.flatMap(({ asked }) => asked).filter((asked) => asked.includes('json_build_object')).length;
}

/** A batch that is full, and what follows it. */
function largeLog(): Script {
  const mark = { epoch: 'one', unit: 7, completeMs: 5, keptMs: 6 };
  const clientIds = Array.from({ length: 2_000 }, (_, index) => `client-${index}`);
  const full = { clientIds, generations: clientIds.map((_, index) => index), last: ['2000', 'an id'], mark };
  return { json_build_object: (values) => found(values?.[0] === null ? full : { mark }) };
}

describe('a reader', () => {
  it('returns the mark with the end of the log only: what follows a full batch was appended before it', async () => {
    const { source, pool } = fakeSource(largeLog());
    const reader = source.reader();
    const first = await reader.next(60_000);
    expect(first.changes).toHaveLength(2_000);
    expect(first.changes[1_999]).toEqual(['client-1999', 1_999]);
    expect([first.mark, first.end]).toEqual([undefined, false]);
    // It does not wait in between.
    const second = await reader.next(60_000);
    expect(second).toEqual({ changes: [], end: true, mark: { epoch: 'one', unit: 7, completeMs: 5, keptMs: 6 } });
    expect([pool.clients.length, readsOf(pool)]).toEqual([1, 2]);
  });

  it('refuses a table in a later format', async () => {
    const mark = { epoch: 'one', unit: 7, completeMs: 5, keptMs: 6 };
    const read = (format: unknown): Promise<unknown> =>
      fakeSource({ json_build_object: () => found({ mark: { ...mark, format } }) })
        .source.reader()
        .next(0);
    expect(await read(1)).toEqual({ changes: [], end: true, mark });
    const message =
      'the log is in a later format, which this version of Tillgate cannot read: update this process (UPGRADE.md)';
    await expect(read(2)).rejects.toThrow(message);
  });

  it('reads a new epoch at another time than others, whatever notifications come with it', async () => {
    let epoch = 'one';
    const mark = () => ({ epoch, unit: 1, completeMs: 5, keptMs: 6 });
    const { source, pool, time } = fakeSource({ json_build_object: () => found({ mark: mark() }) });
    const readers = Array.from({ length: 200 }, () => source.reader());
    for (const reader of readers) await reader.next(0);
    epoch = 'two';
    for (const client of pool.clients) client.emit('notification');
    await Promise.all(readers.map((reader) => reader.next(5_000)));
    let before = readsOf(pool);
    expect(before).toBe(400);
    const reading = Promise.all(readers.map((reader) => reader.next(5_000)));
    await settle();
    for (const client of pool.clients) client.emit('notification');
    const perSecond: number[] = [];
    for (let second = 0; second < 5; second++) {
      await time.advance(1_000);
      perSecond.push(readsOf(pool) - before);
      before = readsOf(pool);
    }
    await reading;
    expect(before).toBe(600);
    // 40 in each, more or less; fewer than 10 or more than 100 do not come about by chance.
    for (const count of perSecond) expect([count >= 10, count <= 100]).toEqual([true, true]);
  });

  it('waits for a notification or its time, then reads once', async () => {
    const { source, pool, time } = fakeSource();
    const reader = source.reader();
    await reader.next(0);
    let returned = 0;
    const next = (): void => void reader.next(5_000).then(() => returned++);
    next();
    await time.advance(4_999);
    expect([returned, readsOf(pool)]).toEqual([0, 1]);
    await time.advance(1);
    expect([returned, readsOf(pool)]).toEqual([1, 2]);
    next();
    await time.advance(1);
    pool.clients[0]?.emit('notification', { channel: 'tillgate_generations' });
    await settle();
    expect([returned, readsOf(pool), time.pending]).toEqual([2, 3, 0]);
    // What was notified between two calls is read immediately.
    pool.clients[0]?.emit('notification', { channel: 'tillgate_generations' });
    next();
    await settle();
    expect([returned, readsOf(pool)]).toEqual([3, 4]);
  });

  it('ends its wait when its connection is lost, and opens another one for the next call', async () => {
    const { source, pool } = fakeSource();
    const reader = source.reader();
    await reader.next(0);
    const waiting = reader.next(60_000);
    await settle();
    pool.clients[0]?.emit('error', failing('57P01'));
    await expect(waiting).rejects.toThrow('PostgreSQL: the server has ended the connection (57P01)');
    await reader.next(60_000);
    expect(pool.clients.map(({ released }) => released)).toEqual([[true], []]);
  });

  it('destroys a connection that does not respond', async () => {
    const { source, pool, time } = fakeSource({ json_build_object: never });
    const reading = source.reader().next(0);
    const outcome = expect(reading).rejects.toThrow('PostgreSQL: no response within 5000 ms');
    await time.advance(5_000);
    await outcome;
    expect(pool.clients[0]?.released).toEqual([true]);
  });

  it.each(['reader', 'source'] as const)(
    'leaves no connection when its %s is closed while it connects',
    async (what) => {
      const { source, pool } = fakeSource();
      let arrive = (): void => undefined;
      pool.connecting = () => new Promise((resolve) => (arrive = resolve));
      const reader = source.reader();
      const outcome = expect(reader.next(0)).rejects.toThrow(SourceError);
      await settle();
      if (what === 'reader') reader.close();
      else await source.close?.();
      arrive();
      await outcome;
      expect(pool.clients[0]?.released).toEqual([true]);
    },
  );

  it('gives a connection that arrives too late back to the pool', async () => {
    const { source, pool, time } = fakeSource();
    let arrive = (): void => undefined;
    pool.connecting = () => new Promise((resolve) => (arrive = resolve));
    const outcome = expect(source.reader().next(0)).rejects.toThrow('PostgreSQL: no response within 5000 ms');
    await time.advance(5_000);
    await outcome;
    arrive();
    await settle();
    expect(pool.clients[0]?.released).toEqual([false]);
  });

  it.each([
    ['28P01', 'user name or password is wrong (28P01)'],
    ['42501', 'the user lacks a privilege: SELECT to read'],
    ['XX000', 'Error (XX000)'],
  ])('that fails with %s says what to do, and nothing of the message', async (code, message) => {
    const { source } = fakeSource({ json_build_object: failing(code) });
    const error: unknown = await source
      .reader()
      .next(0)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SourceError);
    expect(String(error)).toContain(`PostgreSQL: ${message}`);
    expect(String(error)).not.toContain('hunter2');
  });
});

describe('append', () => {
  it('uses one connection, on which the server ends what takes longer than the source waits', async () => {
    const { source, pool } = fakeSource({}, { timeoutMs: 1_000 });
    await Promise.all([source.append([['pos', 5]]), source.append([['pos', 6]])]);
    await source.append([['pos', 7]]);
    const [client] = pool.clients;
    expect([pool.clients.length, client?.released]).toEqual([1, []]);
    expect(client?.asked.filter((asked) => asked.includes('statement_timeout'))).toHaveLength(1);
    await source.close();
    expect(client?.released).toEqual([true]);
  });

  it('destroys it after a failure, and opens another one', async () => {
    const { source, pool } = fakeSource({ INSERT: failing('57014') });
    await expect(source.append([['pos', 5]])).rejects.toThrow('PostgreSQL: the statement took too long (57014)');
    await expect(source.append([['pos', 5]])).rejects.toThrow('57014');
    expect(pool.clients.map(({ released }) => released)).toEqual([[true], [true]]);
  });

  it('does not wait for its turn for longer than for a statement', async () => {
    const { source, time } = fakeSource({ INSERT: never });
    const outcomes = [1, 2, 3].map((generation) => source.append([['pos', generation]]).catch(String));
    await time.advance(5_000);
    const late = 'SourceError: PostgreSQL: no response within 5000 ms';
    expect(await Promise.all(outcomes)).toEqual([late, late, late]);
  });
});

const UNREACHABLE = 'postgres://pos:hunter2@127.0.0.1:1/shop';

function messageOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
  return 'nothing was thrown';
}

/** A package pg that keeps what it was asked to make. */
function fakePg() {
  const made: Record<string, unknown>[] = [];
  const ended: number[] = [];
  class FakePgPool {
    ending = false;
    constructor(config: Record<string, unknown>) {
      made.push(config);
    }
    connect(): Promise<never> {
      return Promise.reject(new Error(`cannot reach ${UNREACHABLE}`));
    }
    on(): void {}
    end(): Promise<void> {
      this.ending = true;
      ended.push(made.length);
      return Promise.resolve();
    }
  }
  return { made, ended, load: () => ({ Pool: FakePgPool }) };
}

describe('postgresGenerations', () => {
  it('takes the pool of pg as it is', async () => {
    const pool: PostgresPool & Pool = new Pool({ connectionTimeoutMillis: 1_000 });
    await postgresGenerations({ pool }).close();
    await pool.end();
  });

  const noPool = 'option "pool" must be a pool of connections, such as Pool of pg 8, got';
  it.each([
    [{}, `${noPool} undefined`],
    [{ pool: 'postgres://db' }, `${noPool} "postgres://db"`],
    [{ pools: {} }, 'unknown option "pools"; did you mean "pool"?'],
    [{ pool: { connect() {}, options: { max: 1 } } }, 'option "pool" must be a pool of at least two connections'],
    [{ pool: { connect() {} }, createTable: 'yes' }, 'option "createTable" must be true or false, got "yes"'],
    [{ pool: { connect() {} }, mark: 'off' }, 'option "mark" must be true or false, got "off"'],
    [
      { pool: { connect() {} }, timeoutMs: 0 },
      'option "timeoutMs" must be a number of milliseconds from 1 to 600000, got 0',
    ],
  ])('refuses %j', (options, message) => {
    expect(messageOf(() => postgresGenerations(options as never))).toContain(`postgresGenerations(): ${message}`);
  });

  const statements = ['floors; DROP TABLE users', 'floors"', 'sch"ema.floors', "floors'", 'floors--'];
  it.each(['', '.', 'a.b.c', ...statements, '1floors', 'flöors', 'x'.repeat(49), 7, null])(
    'refuses the table %j',
    (table) => {
      const expected = 'option "table" must be "table" or "schema.table" of letters, digits and underscores';
      expect(messageOf(() => postgresSchema(table as string))).toContain(expected);
      if (table !== null) expect(messageOf(() => fakeSource({}, { table: table as string }))).toContain(expected);
    },
  );
});

describe('a postgres: URL', () => {
  it('makes a pool with bounds, without a connection yet', async () => {
    const { load, made, ended } = fakePg();
    const source = postgresFromUrl(`${UNREACHABLE}?sslmode=verify-full`, { load });
    expect(made).toEqual([
      {
        connectionString: `${UNREACHABLE}?sslmode=verify-full`,
        max: 2,
        connectionTimeoutMillis: 5_000,
        keepAlive: true,
        keepAliveInitialDelayMillis: 10_000,
        application_name: 'tillgate',
      },
    ]);
    await source.close();
    await source.close();
    expect(ended).toHaveLength(1);
  });

  it.each([
    ['?mark=off', '', false],
    ['?mark=on&sslmode=disable', '?sslmode=disable', true],
    ['?table=shop.log&sslmode=disable', '?sslmode=disable', true],
    // As given, character by character.
    ['?application_name=ü', '?application_name=ü', true],
  ])('leaves to pg what is not its own: %s', (query, left, mark) => {
    const { load, made } = fakePg();
    const source = postgresFromUrl(UNREACHABLE + query, { load });
    expect([made[0]?.['connectionString'], source.mark]).toEqual([UNREACHABLE + left, mark]);
  });

  it('names the table', () => {
    const { load } = fakePg();
    expect(messageOf(() => postgresFromUrl(`${UNREACHABLE}?table=a;b`, { load }))).toContain('option "table" must be');
  });

  it('says which package is missing', () => {
    const load = (name: string): never => {
      throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
    };
    expect(messageOf(() => postgresFromUrl(UNREACHABLE, { load }))).toBe(
      'generations: a postgres: URL needs the package pg (pg is not installed): npm install pg@8',
    );
  });

  it('is never repeated', async () => {
    const { load } = fakePg();
    const source = postgresFromUrl(UNREACHABLE, { load });
    await expect(source.reader().next(0)).rejects.toThrow(/^PostgreSQL: Error$/);
    expect(messageOf(() => postgresFromUrl('postgres://pos:hunter2@[', { load }))).toBe(
      'generations: the postgres: URL is not valid',
    );
  });
});
