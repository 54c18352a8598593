import { Client } from 'pg';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { openSource, startVerifier, verdict } from './fixtures';
import type { OpenSource } from './fixtures';

const UPSERT = `
  INSERT INTO tillgate_generations (client_id, generation) VALUES ($1, $2) ON CONFLICT (client_id)
  DO UPDATE SET generation = greatest(tillgate_generations.generation, excluded.generation)`;
const NOW = Date.now();

let server: PostgresServer;
let writer: Client;
let clients: Client[] = [];
let opened: OpenSource;

beforeAll(async () => {
  server = await startPostgres();
  writer = await connect();
});

beforeEach(async () => {
  opened = openSource({ connectionString: server.url });
  await opened.source.read(0);
});

afterEach(async () => {
  await opened.close();
  const [first, ...others] = clients;
  await Promise.all(others.map((client) => client.end()));
  clients = first ? [first] : [];
  await writer.query('DROP TABLE tillgate_generations');
  await writer.query('DROP FUNCTION tillgate_generations_stamp, tillgate_generations_notify');
});

afterAll(async () => {
  await writer.end();
  await server.stop();
});

/** Ended after the test, so that none that failed holds up the rest. */
async function connect(): Promise<Client> {
  const client = new Client({ connectionString: server.url });
  client.on('error', () => undefined);
  await client.connect();
  clients.push(client);
  return client;
}

/** Opens a transaction that has written, and returns the function that ends it. */
async function writeWithoutCommit(clientId: string, generation: number): Promise<(end?: string) => Promise<void>> {
  const client = await connect();
  await client.query('BEGIN');
  await client.query(UPSERT, [clientId, generation]);
  return async (end = 'COMMIT') => void (await client.query(end));
}

async function readMap(sinceMs: number): Promise<Map<string, number>> {
  return new Map((await opened.source.read(sinceMs)).floors);
}

async function readNow(): Promise<number> {
  return (await opened.source.read(0)).nowMs;
}

describe('two transactions, the earlier one commits later', () => {
  it('is found by the next read, without any overlap', async () => {
    const commit = await writeWithoutCommit('pos', NOW + 1);
    await writer.query(UPSERT, ['kiosk', NOW + 2]);
    const nowMs = await readNow();
    await eventually('the server tells a later time', async () => (await readNow()) > nowMs);
    const sinceMs = await readNow();
    await commit();
    expect(await readMap(sinceMs)).toEqual(
      new Map([
        ['pos', NOW + 1],
        ['kiosk', NOW + 2],
      ]),
    );
  });

  it('reaches a verifier without overlap through hints alone, however many reads lie between', async () => {
    const verifier = startVerifier(opened.source, { overlapMs: 0 });
    await verifier.ready();
    const commit = await writeWithoutCommit('pos', NOW + 1);
    for (let n = 1; n <= 20; n++) {
      await writer.query(UPSERT, ['kiosk', NOW + n]);
      await eventually('the later change', () => verdict(verifier, 'kiosk', NOW + n - 1) === 'superseded');
    }
    expect(verdict(verifier, 'pos', NOW)).toBe('admitted');
    await commit();
    await eventually('the earlier change', () => verdict(verifier, 'pos', NOW) === 'superseded');
    await verifier.close();
  });

  it('is found although the later one touched the same client', async () => {
    await writer.query(UPSERT, ['pos', NOW]);
    const old = await connect();
    // Its number is taken now, long before it writes.
    await old.query('BEGIN');
    await old.query('SELECT pg_current_xact_id()');
    await writer.query(UPSERT, ['pos', NOW + 1]);
    const sinceMs = await readNow();
    await old.query(UPSERT, ['pos', NOW + 2]);
    await old.query('COMMIT');
    expect((await readMap(sinceMs)).get('pos')).toBe(NOW + 2);
  });

  it('is found when it was written in a savepoint', async () => {
    const client = await connect();
    await client.query('BEGIN');
    await client.query('SAVEPOINT one');
    await client.query(UPSERT, ['pos', NOW + 1]);
    await client.query('RELEASE one');
    await writer.query(UPSERT, ['kiosk', NOW + 2]);
    const sinceMs = await readNow();
    await client.query('COMMIT');
    expect((await readMap(sinceMs)).get('pos')).toBe(NOW + 1);
  });

  it('leaves nothing when it is rolled back', async () => {
    const end = await writeWithoutCommit('pos', NOW + 1);
    const sinceMs = await readNow();
    await end('ROLLBACK');
    expect((await readMap(sinceMs)).has('pos')).toBe(false);
    expect((await readMap(0)).has('pos')).toBe(false);
  });

  it('no longer comes with every read once all earlier transactions have ended', async () => {
    const commit = await writeWithoutCommit('pos', NOW + 1);
    await commit();
    await eventually('a read without it', async () => (await readMap(await readNow())).size === 0);
  });
});
