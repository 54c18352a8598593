import type { Pool } from 'pg';
import { postgresSchema } from '../../../src/generation';
import { generationsFromUrl } from '../../../src/generation/from-url';
import { recordingLogger } from '../../support/log';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { openSource, quietPool } from './fixtures';
import type { OpenSource } from './fixtures';

const NOW = Date.now();

let server: PostgresServer;
let admin: Pool;
let opened: OpenSource[] = [];
let tables = 0;
let table: string;

beforeAll(async () => {
  server = await startPostgres();
  admin = quietPool(server.url);
});

beforeEach(() => {
  table = `floors_${++tables}`;
});

afterEach(async () => {
  await Promise.all(opened.map((one) => one.close()));
  opened = [];
});

afterAll(async () => {
  await admin.end();
  await server.stop();
});

function open(url = server.url, options: Parameters<typeof openSource>[1] = {}): OpenSource {
  const one = openSource({ connectionString: url }, { table, ...options });
  opened.push(one);
  return one;
}

async function floorsOf({ source }: OpenSource): Promise<unknown[]> {
  return [...(await source.read(0)).floors];
}

/** A user of the database, with nothing but these privileges on the table. */
async function userWith(name: string, privileges: string): Promise<string> {
  await admin.query(`CREATE USER ${name}; REVOKE CREATE ON SCHEMA public FROM PUBLIC`);
  if (privileges !== '') await admin.query(`GRANT ${privileges} ON ${table} TO ${name}`);
  return server.url.replace('postgres@', `${name}@`);
}

describe('the table', () => {
  it('is made by the SQL of postgresSchema(), and one statement from anywhere publishes and hints', async () => {
    await server.tool('psql', ['-q', '-v', 'ON_ERROR_STOP=1'], postgresSchema(table));
    const one = open(server.url, { createTable: false });
    const wake = jest.fn();
    await one.source.watch(wake);
    const statement = `INSERT INTO ${table} (client_id, generation) VALUES ('pos', ${NOW})
      ON CONFLICT (client_id) DO UPDATE SET generation = greatest(${table}.generation, excluded.generation);`;
    await server.tool('psql', ['-q', '-v', 'ON_ERROR_STOP=1'], statement);
    await eventually('the hint', () => wake.mock.calls.length > 0);
    expect(await floorsOf(one)).toEqual([['pos', NOW]]);
  });

  it('takes no lower number, however it is written, and then gives no hint', async () => {
    const one = open();
    await one.source.publish('pos', NOW);
    const wake = jest.fn();
    await one.source.watch(wake);
    await admin.query(`UPDATE ${table} SET generation = 5`);
    await admin.query(`UPDATE ${table} SET generation = generation`);
    await one.source.publish('pos', NOW - 1);
    expect(await floorsOf(one)).toEqual([['pos', NOW]]);
    await one.source.publish('kiosk', NOW);
    await eventually('a hint', () => wake.mock.calls.length > 0);
    expect(wake).toHaveBeenCalledTimes(1);
  });

  it.each([
    ["('pos', -1)", 'negative'],
    ["('pos', 9007199254740992)", 'beyond what a double holds'],
  ])('refuses %s (%s)', async (values) => {
    const one = open();
    await floorsOf(one);
    await expect(admin.query(`INSERT INTO ${table} (client_id, generation) VALUES ${values}`)).rejects.toThrow(/check/);
  });

  it('is created once when many processes start together', async () => {
    const many = Array.from({ length: 8 }, () => open());
    await Promise.all(many.map(({ source }, n) => source.publish('pos', NOW + n)));
    expect(await floorsOf(open())).toEqual([['pos', NOW + 7]]);
    expect(many.flatMap(({ log }) => log.at('info').map(({ message }) => message))).toEqual([
      'the table of generations is created',
    ]);
  });

  it('is read in pages, none of them lost or doubled', async () => {
    const one = open();
    await floorsOf(one);
    for (const count of [1_999, 2_000, 2_001, 6_000]) {
      await admin.query(`TRUNCATE ${table}`);
      await admin.query(`INSERT INTO ${table} SELECT 'client-' || n, ${NOW} + n FROM generate_series(1, ${count}) n`);
      const { floors, nowMs } = await one.source.read(0);
      expect(new Map(floors).size).toBe(count);
      expect([...floors]).toHaveLength(count);
      expect(nowMs).toBeGreaterThanOrEqual(NOW);
    }
  });
});

describe('what a source says when it may not', () => {
  it('has no table', async () => {
    const { source } = open(server.url, { createTable: false });
    const missing = `PostgreSQL: the table ${table} does not exist or has no trigger tillgate_stamp`;
    await expect(source.read(0)).rejects.toThrow(missing);
    await expect(source.publish('pos', NOW)).rejects.toThrow('PostgreSQL: the table does not exist; create it with');
  });

  it('may read an existing table, and nothing else', async () => {
    await open().source.publish('pos', NOW);
    const one = open(await userWith('reads', 'SELECT'));
    expect(await floorsOf(one)).toEqual([['pos', NOW]]);
    const stop = await one.source.watch(() => undefined);
    stop();
    await expect(one.source.publish('pos', NOW + 1)).rejects.toThrow('PostgreSQL: the user lacks a privilege');
  });

  it('may publish with INSERT, UPDATE and SELECT', async () => {
    await open().source.publish('pos', NOW);
    const one = open(await userWith('writes', 'SELECT, INSERT, UPDATE'));
    await one.source.publish('pos', NOW + 1);
    expect(await floorsOf(one)).toEqual([['pos', NOW + 1]]);
    // Without DELETE the table grows.
    await eventually('the warning', () => one.log.at('warn').length > 0);
    expect(one.log.at('warn')).toMatchObject([{ fields: { detail: expect.stringContaining('DELETE to remove') } }]);
  });

  it('may not create the table', async () => {
    const one = open(await userWith('visits', ''));
    await expect(one.source.read(0)).rejects.toThrow('CREATE to create the table (42501)');
  });
});

describe('an address', () => {
  it('makes a source that creates its table, publishes, reads, hints and ends its connections', async () => {
    const source = generationsFromUrl(server.url, { logger: recordingLogger() });
    const wake = jest.fn();
    await source.watch?.(wake);
    await source.publish?.('pos', NOW);
    await eventually('the hint', () => wake.mock.calls.length > 0);
    expect([...(await source.read(0)).floors]).toEqual([['pos', NOW]]);
    await source.close?.();
    await source.close?.();
    const ours = "SELECT FROM pg_stat_activity WHERE application_name = 'tillgate'";
    await eventually('no connection of ours', async () => (await admin.query(ours)).rows.length === 0);
    await expect(source.read(0)).rejects.toThrow('PostgreSQL: the source is closed');
  });

  it('with sslmode=require is refused by a server without TLS instead of falling back', async () => {
    const source = generationsFromUrl(`${server.url}?sslmode=require`, { logger: recordingLogger() });
    await expect(source.read(0)).rejects.toThrow('PostgreSQL: ');
    await source.close?.();
  });

  it('with a wrong password says so without it', async () => {
    const source = generationsFromUrl(server.url.replace('postgres@', 'nobody:hunter2@'), {
      logger: recordingLogger(),
    });
    await expect(source.read(0)).rejects.toThrow(/^PostgreSQL: (?!.*hunter2)/);
    await source.close?.();
  });
});
