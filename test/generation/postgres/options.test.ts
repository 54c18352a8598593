import { Pool } from 'pg';
import { postgresGenerations, sourceFromUrl } from '../../../src/generation/postgres/log';
import { postgresSchema } from '../../../src/generation/postgres/schema';
import type { PostgresPool } from '../../../src/generation/postgres/sessions';
import { fakeSource } from './fake';

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

  it.each([
    [{}, 'option "pool" must be a pool of connections, such as Pool of pg 8, got undefined'],
    [
      { pool: 'postgres://db' },
      'option "pool" must be a pool of connections, such as Pool of pg 8, got "postgres://db"',
    ],
    [{ pool: { connect() {}, options: { max: 1 } } }, 'option "pool" must be a pool of at least two connections'],
    [{ pools: {} }, 'unknown option "pools"; did you mean "pool"?'],
    [{ pool: { connect() {} }, createTable: 'yes' }, 'option "createTable" must be true or false, got "yes"'],
    [{ pool: { connect() {} }, mark: 'off' }, 'option "mark" must be true or false, got "off"'],
    [{ pool: { connect() {} }, timeoutMs: 0 }, 'option "timeoutMs" must be a number of ms from 1 to 600000, got 0'],
  ])('refuses %j', (options, message) => {
    expect(messageOf(() => postgresGenerations(options as never))).toContain(`postgresGenerations(): ${message}`);
  });

  it.each([
    '',
    '.',
    'a.b.c',
    'floors; DROP TABLE users',
    'floors"',
    'sch"ema.floors',
    "floors'",
    'floors--',
    '1floors',
    'flöors',
    'x'.repeat(49),
    7,
    null,
  ])('refuses the table %j', (table) => {
    const expected = 'option "table" must be "table" or "schema.table" of letters, digits and underscores';
    expect(messageOf(() => postgresSchema(table as string))).toContain(expected);
    if (table !== null) expect(messageOf(() => fakeSource({}, { table: table as string }))).toContain(expected);
  });

  it('warns about a pool that waits for a connection without end', () => {
    const pool = { connect: () => Promise.reject(new Error('down')), options: { max: 10 } };
    const { log } = fakeSource({}, { pool });
    const detail = 'a connection attempt that hangs blocks its place in the pool; set it to 5000, for example';
    expect(log.entries).toEqual([
      {
        level: 'warn',
        fields: { table: 'tillgate_generations', detail },
        message: 'the pool of PostgreSQL connections has no connectionTimeoutMillis',
      },
    ]);
    expect(fakeSource().log.entries).toEqual([]);
  });
});

describe('a postgres: URL', () => {
  it('makes a pool with bounds, without a connection yet', async () => {
    const { load, made, ended } = fakePg();
    const source = sourceFromUrl(`${UNREACHABLE}?sslmode=verify-full`, { load });
    expect(made).toEqual([
      {
        connectionString: `${UNREACHABLE}?sslmode=verify-full`,
        max: 4,
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
    const source = sourceFromUrl(UNREACHABLE + query, { load });
    expect([made[0]?.['connectionString'], source.mark]).toEqual([UNREACHABLE + left, mark]);
  });

  it('names the table', () => {
    const { load } = fakePg();
    expect(messageOf(() => sourceFromUrl(`${UNREACHABLE}?table=a;b`, { load }))).toContain('option "table" must be');
  });

  it('says which package is missing', () => {
    const load = (name: string): never => {
      throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
    };
    expect(messageOf(() => sourceFromUrl(UNREACHABLE, { load }))).toBe(
      'generations: a postgres: URL needs the package pg, and it is not installed: npm install pg@8',
    );
  });

  it('is never repeated', async () => {
    const { load } = fakePg();
    const source = sourceFromUrl(UNREACHABLE, { load });
    await expect(source.reader().next(0)).rejects.toThrow(/^PostgreSQL: Error$/);
    expect(messageOf(() => sourceFromUrl('postgres://pos:hunter2@[', { load }))).toBe(
      'generations: the postgres: URL is not valid',
    );
  });
});
