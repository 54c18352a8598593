import { postgresSchema } from '../../../src/generation';
import { sourceFromUrl } from '../../../src/generation/postgres/source';
import { FakeClient, HEALTHY, fakeSource } from './fake';

/** Whether the table exists, look by look. */
function looks(...found: readonly boolean[]) {
  const left = [...found];
  return {
    'SELECT FROM pg_class': (values: unknown[] | undefined) =>
      String(values).endsWith('_age"') || left.shift() === true ? [{}] : [],
  };
}

const LOOK = 'SELECT FROM pg_class WHERE oid = to_regclass($1)';
const LOCK = 'SELECT pg_advisory_xact_lock($1)';

async function statementsOf(...found: readonly boolean[]) {
  const { source, pool, log } = fakeSource(looks(...found), { createTable: true });
  await source.publish('pos', 5);
  const { asked, values } = pool.clients[0]!;
  return { asked: asked.map((text) => text.replace(/^(CREATE TABLE "\w+").*/s, '$1')), values, log };
}

describe('createTable: true', () => {
  it('creates the table under a lock, and says so', async () => {
    const { asked, values, log } = await statementsOf(false, false);
    expect(asked).toEqual([LOOK, 'BEGIN', LOCK, LOOK, 'CREATE TABLE "tillgate_generations"', 'COMMIT']);
    const table = ['"tillgate_generations"'];
    expect(values).toEqual([table, undefined, [expect.any(Number)], table, undefined, undefined]);
    expect(log.entries).toEqual([
      { level: 'info', fields: { table: 'tillgate_generations' }, message: 'the table of generations is created' },
    ]);
  });

  it('neither locks nor creates where the table exists: that needs no privilege', async () => {
    const { asked, log } = await statementsOf(true);
    expect([asked, log.entries]).toEqual([[LOOK], []]);
  });

  it('does not create it twice when another process was quicker', async () => {
    const { asked, log } = await statementsOf(false, true);
    expect([asked, log.entries]).toEqual([[LOOK, 'BEGIN', LOCK, LOOK, 'COMMIT'], []]);
  });

  it('is what a postgres: URL means', async () => {
    const client = new FakeClient({ ...HEALTHY, ...looks(true) });
    class Pool {
      on(): void {}
      connect(): Promise<FakeClient> {
        return Promise.resolve(client);
      }
    }
    await sourceFromUrl('postgres://db.test/shop', { load: () => ({ Pool }) }).publish('pos', 5);
    expect(client.asked[0]).toBe(LOOK);
  });
});

it.each([
  [undefined, '"tillgate_generations"', '"tillgate_generations_stamp"', '"tillgate_generations_notify"'],
  ['Shop.Floors', '"Shop"."Floors"', '"Shop"."Floors_stamp"', '"Shop"."Floors_notify"'],
])('the schema of %s names the table and its functions', (table, quoted, stamp, notify) => {
  const sql = postgresSchema(table);
  expect(sql).toContain(`CREATE TABLE ${quoted} (`);
  // In the schema of its table, whatever the search path.
  expect(sql).toContain(
    `CREATE INDEX ${stamp.replace(/^.*\./, '').replace('_stamp', '_age')} ON ${quoted} (generation)`,
  );
  for (const name of [stamp, notify]) {
    expect(sql).toContain(`CREATE FUNCTION ${name}() RETURNS trigger`);
    expect(sql).toContain(`EXECUTE FUNCTION ${name}();`);
  }
});
