import type { Pool } from 'pg';
import { anyPostgres } from '../support/postgres-server';
import { openSource, quietPool } from './fixtures';

let admin: Pool;
let url: string;
let stopServer: () => Promise<void>;
const schema = `tillgate_whole_${process.pid}`;
const table = `${schema}.floors`;

beforeAll(async () => {
  const server = await anyPostgres();
  url = server.url;
  stopServer = () => server.stop();
  admin = quietPool(url);
  await admin.query(`CREATE SCHEMA ${schema}`);
});

afterAll(async () => {
  await admin.query(`DROP SCHEMA ${schema} CASCADE`);
  await admin.end();
  await stopServer();
});

const ODD = [
  '"quoted"',
  'back\\slash',
  'line\nbreak',
  '\u{1f37d} caf\u00e9',
  '__proto__',
  "o'neill",
  '{"a":1}',
  'x'.repeat(2_600),
];
const FIRST = 1_800_000_000_000;

it('a whole read has every row, whatever happened to the table before, and the rows of its snapshot meanwhile', async () => {
  const own = openSource({ connectionString: url }, { table, maxTokenAgeMs: 100 * 365 * 86_400_000 });
  await own.source.read(0);
  await admin.query(`INSERT INTO ${table} SELECT 'client-' || n, ${FIRST} + n FROM generate_series(1, 20000) n`);
  for (const [at, id] of ODD.entries()) await own.source.publish(id, FIRST + at);
  // Rows move to other blocks, and blocks are left empty.
  await admin.query(`UPDATE ${table} SET generation = generation + 1000000 WHERE client_id LIKE 'client-%7'`);
  await admin.query(`DELETE FROM ${table} WHERE client_id LIKE 'client-1%'`);
  await admin.query(`VACUUM ${table}`);
  const { rows } = await admin.query<{ client_id: string; generation: string }>(
    `SELECT client_id, generation FROM ${table}`,
  );
  const expected = new Map(
    rows.filter(({ client_id }) => client_id > '\u0001horizon').map((row) => [row.client_id, Number(row.generation)]),
  );
  expect(expected.size).toBeGreaterThan(8_000);

  const reader = openSource({ connectionString: url }, { table });
  const got = new Map<string, number>();
  let pages = 0;
  await reader.source.read(0, async (page) => {
    if (pages++ === 0)
      await admin.query(`UPDATE ${table} SET generation = generation + 5000000 WHERE client_id LIKE 'client-%9'`);
    for (const [id, generation] of page) got.set(id, generation);
  });
  expect(pages).toBeGreaterThan(3);
  expect(got).toEqual(expected);

  // What moved meanwhile comes with the next read.
  const { floors } = await reader.source.read(Date.now());
  for (const [id, generation] of floors) got.set(id, Math.max(got.get(id) ?? 0, generation));
  expect(got.get('client-29')).toBe(FIRST + 29 + 5_000_000);
  await reader.close();
  await own.close();
});

it('tables that are not one file are read by a cursor, completely', async () => {
  const parts = `${schema}.parts`;
  const source = openSource({ connectionString: url }, { table: parts, maxTokenAgeMs: 100 * 365 * 86_400_000 });
  await source.source.read(0);
  await source.source.publish('of-the-parent', FIRST);
  await admin.query(`CREATE TABLE ${schema}.child () INHERITS (${parts})`);
  await admin.query(`INSERT INTO ${schema}.child (client_id, generation) VALUES ('of-the-child', ${FIRST})`);
  const reader = openSource({ connectionString: url }, { table: parts });
  const { floors } = await reader.source.read(0);
  expect([...floors].map(([id]) => id).sort()).toEqual(['of-the-child', 'of-the-parent']);
  await reader.close();
  await source.close();
});
