import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Pool } from 'pg';
import type { GenerationLog, LogReader, Mark } from '../../../src/gate/generation/log';
import { postgresGenerations } from '../../../src/stores/postgres/log';
import { postgresSchema } from '../../../src/stores/postgres/schema';
import { redisGenerations } from '../../../src/stores/redis/log';
import { quietPool, readToEnd } from '../postgres/fixtures';
import { byIoredis } from '../redis/fixtures';
import type { Connected } from '../redis/fixtures';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';

// Recorded with commit b74b1e9b, when the gate itself still held the engines: it ran write() below.

/** In 2100: later than the clock of Redis, which then takes the ids of entries from it. */
const NOW = 4_102_444_800_000;
const MARKS: readonly Mark[] = [1, 2].map((unit) => ({
  ...{ epoch: 'recorded', unit, keptMs: 86_400_000 },
  completeMs: 1_700_000_000_000 + unit,
}));
const CHANGES = [
  ['till', 1_700_000_000_000],
  ['kiosk "é"', 7],
  ['till', 1_700_000_000_001],
] as const;

async function write(log: Pick<GenerationLog, 'append'>): Promise<void> {
  const [first, second] = MARKS as [Mark, Mark];
  await log.append(CHANGES.slice(0, 2), { expected: undefined, mark: first });
  await log.append(CHANGES.slice(2), { expected: first, mark: second });
}

const ENTRIES = [
  ['4102444800000-0', ['client_id', 'till', 'generation', '1700000000000']],
  ['4102444800000-1', ['client_id', 'kiosk "é"', 'generation', '7']],
  ['4102444800000-2', ['client_id', 'till', 'generation', '1700000000001']],
] as const;
const FIELDS = {
  epoch: 'recorded',
  unit: '2',
  complete_ms: '1700000000002',
  kept_ms: '86400000',
  last: '4102444800000-2',
};
const ROWS: readonly (readonly (string | null)[])[] = [
  ['0', '', '0', '{"epoch":"recorded","unit":2,"keptMs":86400000,"completeMs":1700000000002}'],
  ['1', 'till', '1700000000000', null],
  ['2', 'kiosk "é"', '7', null],
  ['3', 'till', '1700000000001', null],
];
const TABLE = readFileSync(join(__dirname, 'recorded-table.sql'), 'utf8');

async function read(reader: LogReader): Promise<unknown> {
  const { changes, mark } = await readToEnd(reader);
  reader.close();
  return { changes, mark };
}

const EXPECTED = { changes: CHANGES, mark: MARKS[1] };

describe('a log in Redis', () => {
  const KEY = 'tillgate:generations';
  const MARK_KEY = '{tillgate:generations}:mark';
  let server: RedisServer;
  let connected: Connected;
  let log: GenerationLog;

  beforeAll(async () => {
    server = await startRedis();
    connected = await byIoredis(2)(server.url, 'recorded');
    log = redisGenerations({ client: connected.client, clock: () => NOW });
  });

  beforeEach(() => server.command('FLUSHALL'));

  afterAll(async () => {
    await log.close();
    await connected.end();
    await server.stop();
  });

  it('is written as it was, byte for byte', async () => {
    await write(log);
    const entries = await server.command('XRANGE', KEY, '-', '+');
    const mark = await server.command('HMGET', MARK_KEY, ...Object.keys(FIELDS));
    expect(entries).toEqual(ENTRIES);
    expect(mark).toEqual(Object.values(FIELDS));
    expect(await server.command('HLEN', MARK_KEY)).toBe(Object.keys(FIELDS).length);
  });

  it('is read as it was written', async () => {
    for (const [id, fields] of ENTRIES) await server.command('XADD', KEY, id, ...fields);
    await server.command('HSET', MARK_KEY, ...Object.entries(FIELDS).flat());
    expect(await read(log.reader())).toEqual(EXPECTED);
  });
});

describe('a log in PostgreSQL', () => {
  const ROWS_OF =
    'SELECT position::text, client_id, generation::text, mark::text FROM tillgate_generations ORDER BY position';
  let server: PostgresServer;
  let pool: Pool;
  let log: GenerationLog;

  beforeAll(async () => {
    server = await startPostgres();
    pool = quietPool(server.url);
    log = postgresGenerations({ pool, createTable: false, clock: () => NOW });
  });

  beforeEach(async () => {
    await pool.query('DROP TABLE IF EXISTS tillgate_generations');
    await pool.query('DROP FUNCTION IF EXISTS tillgate_generations_append');
    await pool.query(TABLE);
  });

  afterAll(async () => {
    await log.close();
    await pool.end();
    await server.stop();
  });

  it('has the table that it had, and is written as it was, byte for byte', async () => {
    expect(postgresSchema()).toBe(TABLE);
    await write(log);
    expect((await pool.query({ text: ROWS_OF, rowMode: 'array' })).rows).toEqual(ROWS);
  });

  it('is read as it was written', async () => {
    const insert = 'INSERT INTO tillgate_generations (position, client_id, generation, mark) VALUES ($1, $2, $3, $4)';
    for (const row of ROWS) await pool.query(insert, [...row]);
    expect(await read(log.reader())).toEqual(EXPECTED);
  });
});
