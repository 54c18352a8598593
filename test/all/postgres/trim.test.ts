import type { Pool } from 'pg';
import { trimOf, postgresTable } from '../../../src/generation/postgres/table';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { openSource, quietPool, startVerifier, verdict } from './fixtures';
import type { OpenSource } from './fixtures';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

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

/** Keeps floors for a minute and the hour of margin. */
async function open(maxTokenAgeMs = MINUTE): Promise<OpenSource> {
  const one = openSource({ connectionString: server.url }, { table, maxTokenAgeMs });
  opened.push(one);
  await one.source.read(0);
  return one;
}

async function insert(...floors: readonly (readonly [clientId: string, generation: number])[]): Promise<void> {
  for (const floor of floors)
    await admin.query(`INSERT INTO ${table} (client_id, generation) VALUES ($1, $2)`, [...floor]);
}

/** Every row of the table, the reserved ones too. */
async function rows(): Promise<Map<string, number>> {
  const found = await admin.query<{ client_id: string; generation: string }>(`SELECT * FROM ${table}`);
  return new Map(found.rows.map(({ client_id, generation }) => [client_id, Number(generation)]));
}

async function horizonIsWritten(): Promise<void> {
  await eventually('the horizon', async () => (await rows()).has('\u0001horizon'));
}

describe('a publish', () => {
  it('removes floors that discard no living token, never another row', async () => {
    const one = await open();
    const now = Date.now();
    const kept = [
      ['', now - 9 * HOUR],
      ['counter', 5],
      ['largest counter', 1e12 - 1],
      ['living', now - HOUR],
      ['recent', now - MINUTE / 2],
    ] as const;
    await insert(['gone', now - HOUR - MINUTE - 1], ['first', 1e12], ...kept);
    await one.source.publish('pos', now);
    await eventually('the removal', async () => (await rows()).size === kept.length + 2);
    const horizon = (await rows()).get('\u0001horizon') ?? 0;
    expect(await rows()).toEqual(new Map([...kept, ['pos', now], ['\u0001horizon', horizon]]));
    expect(horizon).toBeGreaterThan(now - HOUR - 2 * MINUTE);
    expect(horizon).toBeLessThanOrEqual(Date.now() - HOUR - MINUTE);

    const { floors, completeFromMs } = await one.source.read(0);
    expect([new Map(floors).has('\u0001horizon'), completeFromMs]).toEqual([false, horizon]);
    const verifier = startVerifier(one.source, { maxTokenAgeMs: MINUTE / 2 });
    await verifier.ready();
    expect(verdict(verifier, 'recent', now - MINUTE / 2 - 1)).toBe('superseded');
    await verifier.close();
  });

  it('leaves a floor that rises while old ones are removed', async () => {
    const one = await open();
    const now = Date.now();
    await insert(['rising', now - 2 * HOUR], ['gone', now - 2 * HOUR]);
    const other = await admin.connect();
    try {
      await other.query('BEGIN');
      await other.query(`UPDATE ${table} SET generation = $1 WHERE client_id = 'rising'`, [now]);
      await one.source.publish('pos', now);
      await eventually('the removal', async () => !(await rows()).has('gone'));
    } finally {
      await other.query('COMMIT');
      other.release();
    }
    await one.source.close();
    expect((await rows()).get('rising')).toBe(now);
  });

  it('of thousands of old clients at the time of the removal loses none', async () => {
    const [one, other] = [await open(), await open()];
    const now = Date.now();
    const ids = Array.from({ length: 4_000 }, (_, n) => `client-${n}`);
    await admin.query(`INSERT INTO ${table} SELECT unnest($1::text[]), $2`, [ids, now - 2 * HOUR]);
    await one.source.publish('pos', now);
    for (let n = 0; n < ids.length; n += 50) {
      await Promise.all(ids.slice(n, n + 50).map((id, at) => (at % 2 ? one : other).source.publish(id, now)));
    }
    const kept = await rows();
    expect(ids.filter((id) => kept.get(id) !== now)).toEqual([]);
  });

  it('starts removals that go on until the table is small again', async () => {
    const one = await open();
    const now = Date.now();
    await admin.query(`INSERT INTO ${table} SELECT 'client-' || n, $1 FROM generate_series(1, 2500) n`, [
      now - 2 * HOUR,
    ]);
    await one.source.publish('pos', now);
    await eventually('all removals', async () => (await rows()).size === 2, 10_000);
  });

  it('of a floor below the horizon stores nothing: a token server that starts publishes all it has', async () => {
    const one = await open();
    const now = Date.now();
    await one.source.publish('old', now - 2 * HOUR);
    await horizonIsWritten();
    await one.source.publish('older', now - 3 * HOUR);
    await one.source.publish('counter', 5);
    await one.source.publish('living', now - HOUR);
    const found = await rows();
    expect(['older', 'counter', 'living'].map((id) => found.has(id))).toEqual([false, true, true]);
  });

  it('that raises the horizon wakes no reader for it', async () => {
    const one = await open();
    const wake = jest.fn();
    await one.source.watch(wake);
    await one.source.publish('pos', Date.now());
    await horizonIsWritten();
    await admin.query(`UPDATE ${table} SET generation = generation + 1 WHERE client_id = E'\\x01horizon'`);
    await one.source.publish('pos', Date.now() + 1);
    await eventually('the hints', () => wake.mock.calls.length > 1);
    expect(wake).toHaveBeenCalledTimes(2);
  });
});

it('a process that accepts longer tokens than the publisher knows of refuses all, and says why', async () => {
  const one = await open(24 * HOUR);
  await one.source.publish('pos', Date.now());
  await horizonIsWritten();
  const fits = startVerifier(one.source);
  await fits.ready();
  expect(verdict(fits, 'pos', Date.now())).toBe('admitted');
  const longer = startVerifier(one.source, { maxTokenAgeMs: 48 * HOUR });
  await eventually('its first read', () => longer.status().failures > 0);
  expect(longer.status().lastError).toMatch(
    /^the store keeps floors for 1500 min, and this process needs those of 2881 min/,
  );
  expect(verdict(longer, 'pos', Date.now())).toBe('generations_unavailable');
  await Promise.all([fits.close(), longer.close()]);
});

it('finds old floors by their index, in a table of any size', async () => {
  await open();
  await admin.query(`INSERT INTO ${table} SELECT 'client-' || n, $1 FROM generate_series(1, 50000) n`, [Date.now()]);
  await admin.query(`ANALYZE ${table}`);
  const plan = await admin.query<Record<string, string>>(`EXPLAIN ${trimOf(postgresTable(table), MINUTE)}`);
  const text = plan.rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(text).toContain(`${table}_age`);
  expect(text).not.toContain(`Seq Scan on ${table}`);
});
