import type { Pool } from 'pg';
import { postgresSchema } from '../../../src/stores/postgres/schema';
import { postgresFromUrl } from '../../../src/stores/postgres/log';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { markOf, openSource, quietPool, readAll, readToEnd } from './fixtures';
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
  table = `log_${++tables}`;
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

/** URL of a user of the database with nothing but these privileges. */
async function userWith(name: string, ...privileges: string[]): Promise<string> {
  await admin.query(`CREATE USER ${name}; REVOKE CREATE ON SCHEMA public FROM PUBLIC`);
  for (const privilege of privileges) await admin.query(`GRANT ${privilege} TO ${name}`);
  return server.url.replace('postgres@', `${name}@`);
}

describe('the table', () => {
  it('is made by the SQL of postgresSchema(), and any statement of one row appends', async () => {
    await server.tool('psql', ['-q', '-v', 'ON_ERROR_STOP=1'], postgresSchema(table));
    const insert = `INSERT INTO ${table} (client_id, generation) VALUES ('pos', ${NOW});`;
    await server.tool('psql', ['-q', '-v', 'ON_ERROR_STOP=1'], insert);
    expect(await readAll(open(server.url, { createTable: false }))).toEqual([['pos', NOW]]);
  });

  it('is created once when many processes start together', async () => {
    const many = Array.from({ length: 8 }, () => open());
    await Promise.all(many.map(({ source }, n) => source.append([['pos', NOW + n]])));
    expect(await readAll(open())).toHaveLength(8);
  });

  it.each([
    ["('pos', -1)", 'negative'],
    ["('pos', 9007199254740992)", 'beyond what a double holds'],
    ["('', 1)", 'no client id'],
  ])('refuses %s (%s)', async (values) => {
    await readAll(open());
    await expect(admin.query(`INSERT INTO ${table} (client_id, generation) VALUES ${values}`)).rejects.toThrow(/check/);
  });

  it('loses what was kept for longer than the mark says, oldest first, some at a time', async () => {
    const { source } = open();
    await source.append(
      Array.from({ length: 600 }, (_, index) => [`old-${index}`, NOW]),
      { expected: undefined, mark: markOf(1) },
    );
    await admin.query(`UPDATE ${table} SET appended_at = appended_at - interval '1 day'`);
    const reader = source.reader();
    await readToEnd(reader);
    await source.append([['pos', NOW]], { expected: markOf(1), mark: markOf(2) });
    expect((await readAll({ source })).map(([clientId]) => clientId)).toEqual([
      ...Array.from({ length: 100 }, (_, index) => `old-${index + 500}`),
      'pos',
    ]);
    // A unit that does not take place removes nothing.
    await source.append([], { expected: markOf(1), mark: markOf(2) });
    expect(await readAll({ source })).toHaveLength(101);
    await source.append([], { expected: markOf(2), mark: markOf(3) });
    expect(await readAll({ source })).toEqual([['pos', NOW]]);
    expect((await readToEnd(reader)).changes).toEqual([['pos', NOW]]);
  });

  it('keeps a change for its time from its commit on, however old its transaction is', async () => {
    const { source } = open();
    await readAll({ source });
    const client = await admin.connect();
    await client.query('BEGIN');
    await client.query(`INSERT INTO ${table} (client_id, generation, appended_at) VALUES ('pos', $1, '2001-01-01')`, [
      NOW,
    ]);
    await client.query('COMMIT');
    client.release();
    await source.append([], { expected: undefined, mark: markOf(1) });
    expect(await readAll({ source })).toEqual([['pos', NOW]]);
  });
});

describe('a table that is another one', () => {
  it('holds something else: neither read nor written', async () => {
    await admin.query(`CREATE TABLE ${table} (client_id text PRIMARY KEY, generation bigint NOT NULL)`);
    const message = `PostgreSQL: the table ${table} has no trigger tillgate_append; create one with createTable: true`;
    const { source } = open();
    await expect(readAll({ source })).rejects.toThrow(message);
    await expect(source.append([['pos', NOW]])).rejects.toThrow(message);
    await admin.query(`DROP TABLE ${table}`);
    await source.append([['pos', NOW]]);
    expect(await readAll({ source })).toEqual([['pos', NOW]]);
  });

  it('does not exist', async () => {
    const { source } = open(server.url, { createTable: false });
    const missing = `PostgreSQL: the table ${table} does not exist; create one with createTable: true`;
    await expect(readAll({ source })).rejects.toThrow(missing);
    await expect(source.append([['pos', NOW]])).rejects.toThrow(missing);
  });

  it.each(['DROP TRIGGER tillgate_append ON', 'ALTER TABLE'])(
    'has no trigger that gives positions, as while it is restored: %s',
    async (statement) => {
      const { source } = open();
      await source.append([], { expected: undefined, mark: markOf(1) });
      await admin.query(`${statement} ${table} ${statement === 'ALTER TABLE' ? 'DISABLE TRIGGER ALL' : ''}`);
      const missing = `PostgreSQL: the table ${table} has no trigger tillgate_append`;
      await expect(source.append([['pos', NOW]])).rejects.toThrow(missing);
      await expect(source.append([['pos', NOW]], { expected: markOf(1), mark: markOf(2) })).rejects.toThrow(missing);
      await expect(readAll({ source })).rejects.toThrow(missing);
    },
  );

  it('is in a database that cannot hold every client id', async () => {
    await admin.query(`CREATE DATABASE latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`);
    const { source } = open(server.url.replace(/\/postgres$/, '/latin1'));
    await expect(readAll({ source })).rejects.toThrow('PostgreSQL: the encoding of the database must be UTF8');
  });
});

describe('a user with', () => {
  it('SELECT reads, and is told what appending needs', async () => {
    await open().source.append([['pos', NOW]]);
    const { source } = open(await userWith('reads', `SELECT ON ${table}`));
    expect(await readAll({ source })).toEqual([['pos', NOW]]);
    await expect(source.append([['pos', NOW]])).rejects.toThrow(
      'PostgreSQL: the user lacks a privilege: SELECT to read',
    );
  });

  it('INSERT of the two columns appends, and can do nothing else', async () => {
    await readAll(open());
    const url = await userWith('appends', `INSERT (client_id, generation) ON ${table}`, 'CREATE ON SCHEMA public');
    const { source } = open(url);
    await source.append([['pos', NOW]]);
    expect(await readAll(open())).toEqual([['pos', NOW]]);
    await expect(readAll({ source })).rejects.toThrow('(42501)');
    const own = quietPool(url);
    for (const statement of [
      `INSERT INTO ${table} (position, client_id, generation) VALUES (1000, 'pos', 1)`,
      `UPDATE ${table} SET generation = 0`,
      `SELECT nextval('${table}_position')`,
      // The function has the rights of the owner: no table of another user may call it.
      `CREATE TABLE mine (client_id text); CREATE TRIGGER mine AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION ${table}_append()`,
    ]) {
      await expect(own.query(statement)).rejects.toThrow(/permission denied/);
    }
    // Nor is it led astray by a table of the same name that is searched first.
    await own.query(`CREATE TEMP TABLE ${table} (client_id text, generation bigint)`);
    await own.query(`INSERT INTO public.${table} (client_id, generation) VALUES ('kiosk', ${NOW})`);
    expect(await readAll(open())).toEqual([
      ['pos', NOW],
      ['kiosk', NOW],
    ]);
    await own.end();
  });

  it('all that the message names keeps the mark', async () => {
    await readAll(open());
    const privileges = [`SELECT, INSERT, UPDATE, DELETE ON ${table}`, `UPDATE ON SEQUENCE ${table}_position`];
    const { source } = open(await userWith('publishes', ...privileges));
    const [first, second] = [markOf(1), markOf(2)];
    expect(await source.append([['pos', NOW]], { expected: undefined, mark: first })).toEqual(first);
    expect(await source.append([['pos', NOW]], { expected: first, mark: second })).toEqual(second);
  });

  it('nothing cannot create the table', async () => {
    await expect(readAll(open(await userWith('visits')))).rejects.toThrow('CREATE to create the table (42501)');
  });
});

describe('a URL', () => {
  it('makes a source that creates its table, appends, reads, hints and ends its connections', async () => {
    const source = postgresFromUrl(`${server.url}?table=${table}&mark=off`, {});
    expect(source.mark).toBe(false);
    const reader = source.reader();
    await readToEnd(reader);
    const waiting = reader.next(60_000);
    await source.append([['pos', NOW]]);
    expect((await waiting).changes).toEqual([['pos', NOW]]);
    await source.close();
    await source.close();
    const ours = "SELECT FROM pg_stat_activity WHERE application_name = 'tillgate'";
    await eventually('no connection of ours', async () => (await admin.query(ours)).rows.length === 0);
    await expect(reader.next(0)).rejects.toThrow('the reader is closed');
  });

  it('with sslmode=require is refused by a server without TLS instead of falling back', async () => {
    const source = postgresFromUrl(`${server.url}?sslmode=require`, {});
    await expect(readAll({ source })).rejects.toThrow('PostgreSQL: ');
    await source.close();
  });

  it('with a wrong password says so without it', async () => {
    const url = server.url.replace('postgres@', 'nobody:hunter2@');
    const source = postgresFromUrl(url, {});
    await expect(readAll({ source })).rejects.toThrow(/^PostgreSQL: (?!.*hunter2)/);
    await source.close();
  });
});
