import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Pool } from 'pg';
import { postgresSchema } from '../../../src/stores';
import { authorizationServer, AUTH_URL, cliScene, issuer } from '../../cli/harness';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { quietPool } from './fixtures';
import { SERVER_TABLES } from './server-tables';
import type { ServerTable } from './server-tables';

/* The SQL of the pages, each sample on the tables of its server. */

const ROOT = join(__dirname, '../../..');

interface Sample {
  readonly page: string;
  readonly table: string;
  readonly sql: string;
  /** Whether it raises the number of the client; else it appends the time of the commit. */
  readonly isStamped: boolean;
}

function samplesOf(page: string): readonly Sample[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/^ *```sql\n([^]*?)^ *```$/gm)].flatMap(([, sql = '']) => {
    const [, table] = /TRIGGER \w+ [A-Z ]+ ON ("?\w+"?)/.exec(sql) ?? [];
    return table === undefined ? [] : [{ page, table, sql, isStamped: !sql.includes('CONSTRAINT TRIGGER') }];
  });
}

const SAMPLES = ['docs/generations.md', 'docs/issuers.md'].flatMap(samplesOf);
const named = (isStamped: boolean): [string, Sample][] =>
  SAMPLES.filter((sample) => sample.isStamped === isStamped).map((sample) => [
    `${sample.page}, ${sample.table}`,
    sample,
  ]);

let server: PostgresServer;
let admin: Pool;
let pool: Pool;

beforeAll(async () => {
  server = await startPostgres();
  admin = quietPool(server.url);
});
afterAll(async () => {
  await admin.end();
  await server.stop();
});

/** A database of its own with the tables of a server, the log, and then the triggers. */
let databases = 0;
async function open({ table, sql }: Pick<Sample, 'table' | 'sql'>): Promise<ServerTable> {
  const statements = SERVER_TABLES[table];
  if (!statements) throw new Error(`a page has a trigger on ${table}: server-tables.ts needs its columns`);
  const name = `pages_${++databases}`;
  await admin.query(`CREATE DATABASE ${name}`);
  pool = new Pool({ connectionString: urlOf(name), max: 16 }).on('error', () => undefined);
  await pool.query(`${statements.create};${postgresSchema()}`);
  await pool.query(sql);
  return statements;
}
afterEach(async () => {
  if (databases > 0) await pool.end();
});

const urlOf = (database = `pages_${databases}`): string => server.url.replace(/[^/]*$/, database);

/** The numbers in the log for a client, in the order of the commits. */
async function logOf(id: string): Promise<readonly number[]> {
  const text = 'SELECT generation FROM tillgate_generations WHERE client_id = $1 ORDER BY position';
  const { rows } = await pool.query<{ generation: string }>(text, [id]);
  return rows.map(({ generation }) => Number(generation));
}

const floorOf = async (id: string): Promise<number> => Math.max(...(await logOf(id)));

/** Runs statements about one client in one transaction; returns the time of the database before its commit. */
async function inTransaction(id: string, ...statements: readonly string[]): Promise<number> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    for (const text of statements) await client.query(text, [id]);
    const { rows } = await client.query<{ ms: string }>('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms');
    await client.query('COMMIT');
    return Math.floor(Number(rows[0]?.ms));
  } finally {
    client.release();
  }
}

/** SQL for a value that the column does not have now. */
function anotherValue(column: string, type: string): string {
  const values: Readonly<Record<string, string>> = {
    boolean: `${column} IS NOT TRUE`,
    bigint: `coalesce(${column}, 0) + 1`,
    uuid: 'gen_random_uuid()',
    jsonb: `jsonb_build_array(${column})`,
    text: `coalesce(${column}, '') || 'x'`,
    'character varying': `left(coalesce(${column}, '') || 'x', 20)`,
  };
  return values[type] ?? `coalesce(${column}, now()) + interval '1 minute'`;
}

it('the pages have both triggers, and those of servers are on tables that are known here', () => {
  expect(named(false)[0]?.[0]).toBe('docs/generations.md, clients');
  expect(named(true)[0]?.[0]).toBe('docs/generations.md, clients');
  expect(SAMPLES.filter(({ table }) => !(table in SERVER_TABLES))).toEqual([]);
});

describe.each(named(false))('the trigger for tokens compared by iat: %s', (_name, sample) => {
  it('appends the time of the commit for a change, and nothing for a row that stays as it is', async () => {
    const { insert, touch, change } = await open(sample);
    await pool.query(insert, ['till-9']);
    await pool.query(touch, ['till-9']);
    expect(await logOf('till-9')).toEqual([]);
    // The change comes first, then a look at the clock, then the commit.
    const before = await inTransaction('till-9', change);
    const [floor = 0, ...more] = await logOf('till-9');
    expect(more).toEqual([]);
    expect(floor).toBeGreaterThanOrEqual(before);
    expect(floor).toBeLessThanOrEqual(Date.now());
  });

  it('appends for each column that matters, and for no other', async () => {
    const { insert, matters } = await open(sample);
    await pool.query(insert, ['till-9']);
    const bare = sample.table.replaceAll('"', '');
    const { rows: columns } = await pool.query<{ name: string; type: string }>(
      'SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_name = $1',
      [bare],
    );
    const discarding: string[] = [];
    for (const { name, type } of columns) {
      const { rowCount: before } = await pool.query('SELECT FROM tillgate_generations');
      await pool.query(`UPDATE ${sample.table} SET "${name}" = ${anotherValue(`"${name}"`, type)}`);
      const { rowCount: after } = await pool.query('SELECT FROM tillgate_generations');
      if (after !== before) discarding.push(name);
    }
    expect(discarding.sort()).toEqual([...matters].sort());
    expect(columns.length).toBeGreaterThan(matters.length);
  });

  it('appends the time of the commit for two changes in one transaction, and nothing for one that is rolled back', async () => {
    const { insert, change } = await open(sample);
    await pool.query(insert, ['till-9']);
    const before = await inTransaction('till-9', change, change);
    expect(await floorOf('till-9')).toBeGreaterThanOrEqual(before);
    const { length } = await logOf('till-9');
    const client = await pool.connect();
    await client.query('BEGIN');
    await client.query(change, ['till-9']);
    await client.query('ROLLBACK');
    client.release();
    expect(await logOf('till-9')).toHaveLength(length);
  });

  it('appends the time of the commit for a deletion, and nothing for a client that is made again', async () => {
    const { insert, remove } = await open(sample);
    await pool.query(insert, ['till-9']);
    const before = await inTransaction('till-9', remove);
    const floors = await logOf('till-9');
    expect(floors).toHaveLength(1);
    expect(floors[0]).toBeGreaterThanOrEqual(before);
    await pool.query(insert, ['till-9']);
    expect(await logOf('till-9')).toEqual(floors);
  });

  it('appends for each of 16 changes at once', async () => {
    const { insert, change } = await open(sample);
    const ids = Array.from({ length: 16 }, (_, index) => `till-${index}`);
    for (const id of ids) await pool.query(insert, [id]);
    await Promise.all(ids.map((id) => pool.query(change, [id])));
    const lengths = await Promise.all(ids.map(async (id) => (await logOf(id)).length));
    expect(lengths).toEqual(ids.map(() => 1));
    await Promise.all(ids.map(() => pool.query(change, ['till-0'])));
    expect(await logOf('till-0')).toHaveLength(17);
  });
});

describe.each(named(true))('the trigger for stamped tokens: %s', (_name, sample) => {
  /** The number that the next token gets; it is the floor, so that this token is accepted and all before are not. */
  async function numberOf({ number }: ServerTable, id = 'till-9'): Promise<number> {
    const { rows } = await pool.query<{ number: string }>(number, [id]);
    expect(rows).toHaveLength(1);
    const stamped = Number(rows[0]?.number);
    expect(stamped).toBe(await floorOf(id));
    return stamped;
  }

  it('gives a new client a number, and a higher one with each change', async () => {
    const table = await open(sample);
    const before = Date.now() - 1;
    await pool.query(table.insert, ['till-9']);
    const first = await numberOf(table);
    expect(first).toBeGreaterThan(before);
    await pool.query(table.change, ['till-9']);
    expect(await numberOf(table)).toBeGreaterThan(first);
  });

  it('appends what the row has after two changes in one transaction', async () => {
    const table = await open(sample);
    await pool.query(table.insert, ['till-9']);
    const first = await numberOf(table);
    await inTransaction('till-9', table.change, table.change);
    expect(await numberOf(table)).toBeGreaterThan(first);
  });

  it('discards the tokens of a deleted client, and those of one that is made again get past that', async () => {
    const table = await open(sample);
    await pool.query(table.insert, ['till-9']);
    const first = await numberOf(table);
    await pool.query(table.remove, ['till-9']);
    const floor = await floorOf('till-9');
    expect(floor).toBeGreaterThan(first);
    await pool.query(table.insert, ['till-9']);
    expect(await numberOf(table)).toBeGreaterThan(floor);
    const again = await numberOf(table);
    await inTransaction('till-9', table.remove, table.insert);
    expect(await numberOf(table)).toBeGreaterThan(again);
  });

  it('gives 16 changes at once 16 numbers, of which the row has the highest', async () => {
    const table = await open(sample);
    await pool.query(table.insert, ['till-9']);
    const { length } = await logOf('till-9');
    await Promise.all(Array.from({ length: 16 }, () => pool.query(table.change, ['till-9'])));
    await numberOf(table);
    const numbers = (await logOf('till-9')).slice(length);
    expect(new Set(numbers).size).toBeGreaterThanOrEqual(16);
  });

  it('does not lock a client out with a row that is not written: ON CONFLICT DO NOTHING', async () => {
    const table = await open(sample);
    await pool.query(table.insert, ['till-9']);
    const first = await numberOf(table);
    await pool.query(`${table.insert} ${table.onConflict}`, ['till-9']);
    expect(await numberOf(table)).toBe(first);
  });

  it('does not lock a client out with a row that is not written: a later trigger returns NULL', async () => {
    const table = await open(sample);
    await pool.query(table.insert, ['till-9']);
    await pool.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
      CREATE TRIGGER zz_refuse BEFORE UPDATE OR DELETE ON ${sample.table} FOR EACH ROW EXECUTE FUNCTION refuse()`);
    await pool.query(table.change, ['till-9']);
    await numberOf(table);
    await pool.query(table.remove, ['till-9']);
    await numberOf(table);
  });

  it('stays above the log where the clock was set back: the log is ten minutes ahead', async () => {
    const table = await open(sample);
    await pool.query(table.insert, ['till-9']);
    await pool.query(table.insert, ['till-8']);
    const ahead = Date.now() + 600_000;
    const append = 'INSERT INTO tillgate_generations (client_id, generation) VALUES ($1, $2)';
    for (const id of ['till-9', 'till-8', 'till-7']) await pool.query(append, [id, ahead]);
    await pool.query(table.change, ['till-9']);
    expect(await numberOf(table)).toBeGreaterThan(ahead);
    await pool.query(table.insert, ['till-7']);
    expect(await numberOf(table, 'till-7')).toBeGreaterThan(ahead);
    const last = await numberOf(table);
    await pool.query(table.remove, ['till-9']);
    expect(await floorOf('till-9')).toBeGreaterThan(last);
    await pool.query(table.insert, ['till-9']);
    expect(await numberOf(table)).toBeGreaterThan(last + 1);
  });
});

describe('tillgate check', () => {
  const [byIat = { sql: '' }, stamped = { sql: '' }] = SAMPLES;

  /** What it says about a token that was issued a second after the change. */
  async function check(generation: number, floor: number): Promise<string> {
    const iat = Math.floor(floor / 1000) + 1;
    const token = issuer.token({
      clientId: 'till-9',
      scope: 'orders:read',
      claims: { generation, iat, exp: iat + 3600 },
    });
    const { run } = cliScene({
      respond: (sent) => authorizationServer(sent),
      env: {
        TILLGATE_AUTH_URL: AUTH_URL,
        TILLGATE_AUDIENCE: issuer.audience,
        TILLGATE_GENERATIONS: `${urlOf()}?mark=off`,
      },
    });
    const { stdout } = await run('check', '--token', token);
    return stdout;
  }

  async function changed({ insert, change, number }: ServerTable): Promise<readonly [number, number]> {
    await pool.query(insert, ['till-9']);
    // The commit comes some ms after the change, as at a server that has more to write.
    await inTransaction('till-9', change, "SELECT pg_sleep(0.005) WHERE $1 <> ''");
    const { rows } = await pool.query<{ number: string }>(number, ['till-9']);
    return [Number(rows[0]?.number), await floorOf('till-9')];
  }

  it('accepts a new token of the right pair', async () => {
    const [number, floor] = await changed(await open(stamped as Sample));
    expect(floor).toBe(number);
    expect(await check(number, floor)).toContain('accepted: client till-9');
  });

  it('names the wrong pair: a server that stamps, and the trigger for iat', async () => {
    const sql = `${stamped.sql}; DROP TRIGGER client_changed ON clients; DROP FUNCTION client_changed; ${byIat.sql}`;
    const [number, floor] = await changed(await open({ table: 'clients', sql }));
    expect(floor).toBeGreaterThan(number);
    const said = await check(number, floor);
    expect(said).toContain(`superseded: generation ${number} is below the floor ${floor}`);
    expect(said).toContain('issuer and publisher use different numbers');
  });
});
