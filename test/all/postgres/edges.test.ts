import { Client } from 'pg';
import type { Pool } from 'pg';
import type { LogReader } from '../../../src/gate/generation/log';
import { ends, startAuthorizationServer, startProcess, untilCurrent } from '../faults/generation-scene';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { markOf, openSource, quietPool, readAll, readToEnd } from './fixtures';
import type { OpenSource } from './fixtures';

const TABLE = 'tillgate_generations';
const INSERT = `INSERT INTO ${TABLE} (client_id, generation) VALUES ($1, $2)`;
const NOW = Date.now();

const opened = ends();
let server: PostgresServer;
let admin: Pool;

beforeAll(async () => {
  server = await startPostgres({ settings: ['wal_level=logical'] });
  admin = quietPool(server.url);
});

afterEach(async () => {
  await opened.run();
  await admin.query(`DROP TABLE IF EXISTS ${TABLE}; DROP FUNCTION IF EXISTS ${TABLE}_append`);
});

afterAll(async () => {
  await admin.end();
  await server.stop();
});

function open(options: Parameters<typeof openSource>[1] = {}, name = 'tillgate-test'): OpenSource {
  const one = openSource({ connectionString: server.url, application_name: name }, options);
  opened.add(() => one.close());
  return one;
}

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: server.url });
  client.on('error', () => undefined);
  await client.connect();
  opened.add(() => client.end());
  return client;
}

async function idsOf(reader: LogReader): Promise<string[]> {
  return (await readToEnd(reader)).changes.map(([clientId]) => clientId);
}

describe('rows whose sequence is behind them: a restored table, or a promoted logical replica', () => {
  async function restored(): Promise<{ source: OpenSource['source']; reader: LogReader }> {
    const { source } = open();
    for (let n = 1; n <= 5; n++) await source.append([[`before-${n}`, NOW]]);
    const reader = source.reader();
    await readToEnd(reader);
    await admin.query(`DELETE FROM ${TABLE} WHERE position < 5; SELECT setval('${TABLE}_position', 1, false)`);
    return { source, reader };
  }

  it.each(['a plain INSERT', 'a unit'])('%s gets a position above them, and is read', async (how) => {
    const { source, reader } = await restored();
    const change = [['after', NOW]] as const;
    if (how === 'a unit') await source.append(change, { expected: undefined, mark: markOf(1) });
    else await admin.query(INSERT, [...change[0]]);
    expect(await idsOf(reader)).toEqual(['after']);
    // The sequence has caught up, also for a transaction that does not see the new row.
    await admin.query(INSERT, ['next', NOW]);
    const { rows } = await admin.query(`SELECT position FROM ${TABLE} WHERE position > 0 ORDER BY position`);
    expect(rows).toEqual([{ position: '5' }, { position: '6' }, { position: '7' }]);
    expect(await idsOf(reader)).toEqual(['next']);
  });

  it('a transaction that has not seen the rows of others does not abort', async () => {
    const { reader } = await restored();
    const client = await connect();
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await client.query(INSERT, ['late', NOW]);
    await admin.query(INSERT, ['early', NOW]);
    await client.query('COMMIT');
    expect(await idsOf(reader)).toEqual(['early', 'late']);
  });
});

it('a publication of all tables makes no writer abort', async () => {
  const { source } = open();
  await source.append([['before', NOW]]);
  await admin.query('CREATE PUBLICATION everything FOR ALL TABLES');
  try {
    await admin.query(INSERT, ['pos', NOW]);
    await source.append([['kiosk', NOW]], { expected: undefined, mark: markOf(1) });
    await source.append([], { expected: markOf(1), mark: markOf(2) });
    expect((await readAll({ source })).map(([clientId]) => clientId)).toEqual(['before', 'pos', 'kiosk']);
  } finally {
    await admin.query('DROP PUBLICATION everything');
  }
});

it('old rows are trimmed by the earlier one of the two clocks, and new ones are never older than those before them', async () => {
  const { source } = open();
  const mark = markOf(1, 'one', 1_000);
  await source.append([['first', NOW]], { expected: undefined, mark });
  // The clock of the server was two days ahead for this row.
  await admin.query(`UPDATE ${TABLE} SET appended_at = appended_at + interval '2 days' WHERE client_id = 'first'`);
  await admin.query(INSERT, ['second', NOW]);
  const { rows } = await admin.query(`SELECT count(*) FROM ${TABLE} WHERE appended_at > now() + interval '1 day'`);
  expect(rows).toEqual([{ count: '2' }]);
  await admin.query(`UPDATE ${TABLE} SET appended_at = now() - interval '1 hour' WHERE position > 0`);
  // A publisher whose clock is behind, and one that writes an epoch.
  for (const [unit, completeMs] of [
    [2, Date.now() - 2 * 3_600_000],
    [3, 0],
  ] as const) {
    await source.append([], { expected: { ...mark, unit: unit - 1 }, mark: { ...mark, unit, completeMs } });
    expect(await readAll({ source })).toHaveLength(2);
  }
  await source.append([], { expected: { ...mark, unit: 3 }, mark: { ...mark, unit: 4, completeMs: Date.now() } });
  expect(await readAll({ source })).toEqual([]);
});

it('connections stay at one per reader and publisher while a transaction that has its position is open', async () => {
  async function connections(name: string): Promise<number> {
    const counted = 'SELECT count(*) FROM pg_stat_activity WHERE application_name = $1';
    const { rows } = await admin.query<{ count: string }>(counted, [name]);
    return Number(rows[0]?.count);
  }

  const [log, reading] = [open({ timeoutMs: 500 }, 'publisher'), open({ timeoutMs: 500 }, 'process')];
  const shop = startAuthorizationServer(log.source, { timeoutMs: 500 });
  opened.add(() => shop.publisher.close());
  await shop.publisher.ready();
  const api = startProcess(reading.source, { pollMs: 100, readTimeoutMs: 500 });
  opened.add(() => api.close());
  await untilCurrent(api, shop.record);
  const blocking = await connect();
  await blocking.query('BEGIN');
  await blocking.query(INSERT, ['blocking', NOW]);
  await blocking.query('SET CONSTRAINTS ALL IMMEDIATE');
  let most = 0;
  const untilMs = Date.now() + 6_000;
  while (Date.now() < untilMs) {
    void shop.change('pos');
    most = Math.max(most, await connections('publisher'), await connections('process'));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  // One that has just been given up ends within a round trip.
  expect(most).toBeLessThanOrEqual(2);
  await blocking.query('COMMIT');
  await eventually('the change', () => shop.publisher.status().pending === 0);
  await untilCurrent(api, shop.record);
});
