import type { Pool } from 'pg';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { openSource, quietPool } from './fixtures';
import type { OpenSource } from './fixtures';

const NOW = Date.now();
const TABLE = 'tillgate_generations';

let server: PostgresServer;
let admin: Pool;
let opened: OpenSource[] = [];

beforeAll(async () => {
  server = await startPostgres();
  admin = quietPool(server.url);
});

beforeEach(async () => {
  await open().source.read(0);
  await admin.query(`TRUNCATE ${TABLE}`);
});

afterEach(async () => {
  await Promise.all(opened.map((one) => one.close()));
  opened = [];
});

afterAll(async () => {
  await admin.end();
  await server.stop();
});

function open(url = server.url): OpenSource {
  const one = openSource({ connectionString: url, application_name: 'publisher' });
  opened.push(one);
  return one;
}

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `client-${n}`);

async function floorsOf({ source }: OpenSource): Promise<Map<string, number>> {
  return new Map((await source.read(0)).floors);
}

describe('many changes together', () => {
  it('are ten transactions and as many hints, not 10,000', async () => {
    const one = open();
    const wake = jest.fn();
    await one.source.watch(wake);
    await Promise.all(ids(10_000).map((id, n) => one.source.publish(id, NOW + n)));
    const { rows } = await admin.query(
      `SELECT count(*)::int AS floors, count(DISTINCT changed_in)::int AS transactions
        FROM ${TABLE} WHERE client_id LIKE 'client-%'`,
    );
    expect(rows).toEqual([{ floors: 10_000, transactions: 10 }]);
    await eventually('the hints', () => wake.mock.calls.length > 0);
    expect(wake.mock.calls.length).toBeLessThanOrEqual(10);
  });

  it('cost the next read only themselves', async () => {
    const one = open();
    await Promise.all(ids(3_000).map((id) => one.source.publish(id, NOW)));
    let sinceMs = 0;
    await eventually('a time beyond the room for a clock that steps back', async () => {
      const { floors, resumeMs = 0 } = await one.source.read(sinceMs);
      sinceMs = resumeMs;
      return [...floors].length === 0;
    });
    await one.source.publish('client-7', NOW + 1);
    expect([...(await one.source.read(sinceMs)).floors]).toEqual([['client-7', NOW + 1]]);
  });

  it('of two publishers, in opposite order, end at the highest numbers without a deadlock', async () => {
    const [one, other] = [open(), open()];
    for (let round = 0; round < 10; round++) {
      const clients = ids(3_000);
      await Promise.all([
        ...clients.map((id) => one.source.publish(id, NOW + 2 * round)),
        ...clients.reverse().map((id) => other.source.publish(id, NOW + 2 * round + 1)),
      ]);
    }
    const floors = await floorsOf(one);
    expect([floors.size, new Set(floors.values())]).toEqual([3_000, new Set([NOW + 19])]);
  });

  it('may name a client twice: the highest number counts, and every call resolves', async () => {
    const one = open();
    await Promise.all([3, 9, 1, 9, 5].map((n) => one.source.publish('pos', NOW + n)));
    expect(await floorsOf(one)).toEqual(new Map([['pos', NOW + 9]]));
  });
});

describe('a batch that fails', () => {
  it('rejects all of its calls and writes nothing; the next one works', async () => {
    const one = open();
    await one.source.publish('client-1', NOW);
    const blocker = await admin.connect();
    await blocker.query('BEGIN');
    await blocker.query(`UPDATE ${TABLE} SET generation = generation + 1 WHERE client_id = 'client-1'`);
    const outcomes = Promise.allSettled(ids(3).map((id) => one.source.publish(id, NOW + 5)));
    const blocked = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name = 'publisher' AND wait_event_type = 'Lock'`;
    await eventually('the batch waits', async () => (await admin.query(blocked)).rows.length > 0);
    const next = one.source.publish('kiosk', NOW);
    const statuses = (await outcomes).map((outcome) => outcome.status === 'rejected' && String(outcome.reason));
    expect(statuses).toEqual(Array(3).fill('SourceError: PostgreSQL: the server has ended the connection (57P01)'));
    await next;
    blocker.release(true);
    expect(await floorsOf(one)).toEqual(
      new Map([
        ['client-1', NOW],
        ['kiosk', NOW],
      ]),
    );
  });

  it('because the database cannot store one client id rejects that call alone', async () => {
    await admin.query(`CREATE DATABASE latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`);
    const one = open(server.url.replace(/\/postgres$/, '/latin1'));
    const given = [...ids(50), '日本語', 'é'];
    const outcomes = await Promise.allSettled(given.map((id) => one.source.publish(id, NOW)));
    expect(outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [given[n]] : []))).toEqual(['日本語']);
    expect((await floorsOf(one)).size).toBe(51);
  });
});
