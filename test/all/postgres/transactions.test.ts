import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import type { Pool } from 'pg';
import type { Change, LogReader } from '../../../src/gate/generation/log';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { markOf, openSource, quietPool, readAll, readToEnd } from './fixtures';
import type { OpenSource } from './fixtures';

const INSERT = 'INSERT INTO tillgate_generations (client_id, generation) VALUES ($1, $2)';
const NOW = Date.now();
/** Long enough that only a hint explains an earlier return. */
const WAIT_MS = 60_000;

let server: PostgresServer;
let admin: Pool;
let clients: Client[] = [];
let opened: OpenSource;
let reader: LogReader;

beforeAll(async () => {
  server = await startPostgres();
  admin = quietPool(server.url);
});

beforeEach(async () => {
  opened = openSource({ connectionString: server.url });
  reader = opened.source.reader();
  await readToEnd(reader);
});

afterEach(async () => {
  await Promise.all(clients.map((client) => client.end()));
  clients = [];
  await opened.close();
  await admin.query('DROP TABLE tillgate_generations; DROP FUNCTION tillgate_generations_append');
});

afterAll(async () => {
  await admin.end();
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

/** Opens a transaction that has appended, and stays open. */
async function appendWithoutCommit(clientId: string, begin = 'BEGIN'): Promise<Client> {
  const client = await connect();
  await client.query(begin);
  await client.query(INSERT, [clientId, NOW]);
  return client;
}

async function readIds(): Promise<string[]> {
  return (await readToEnd(reader)).changes.map(([clientId]) => clientId);
}

/** Waits for changes; a late hint about what was read already may end one wait. */
async function nextIds(): Promise<string[]> {
  for (;;) {
    const { changes } = await reader.next(WAIT_MS);
    if (changes.length > 0) return changes.map(([clientId]) => clientId);
  }
}

describe('a plain INSERT', () => {
  it('from psql reaches a reader that waits', async () => {
    const waiting = reader.next(WAIT_MS);
    await server.tool(
      'psql',
      ['-q'],
      `INSERT INTO tillgate_generations (client_id, generation) VALUES ('pos', ${NOW})`,
    );
    expect((await waiting).changes).toEqual([['pos', NOW]]);
  });

  it('of many rows keeps their order', async () => {
    await admin.query(`INSERT INTO tillgate_generations (client_id, generation)
      SELECT 'client-' || n, n FROM generate_series(1, 100) AS n`);
    expect((await readToEnd(reader)).changes).toEqual(
      Array.from({ length: 100 }, (_, index) => [`client-${index + 1}`, index + 1]),
    );
  });

  it('by a trigger of the table of credentials is a part of the change itself', async () => {
    await admin.query(`
      CREATE TABLE clients (id text PRIMARY KEY, description text, scopes text[], secret_hash text);
      INSERT INTO clients VALUES ('pos', 'a till'), ('kiosk', 'a kiosk')`);
    await admin.query(documentedTrigger());
    await admin.query("BEGIN; UPDATE clients SET description = 'no till' WHERE id = 'pos'; ROLLBACK");
    await admin.query("UPDATE clients SET description = 'a kiosk' WHERE id = 'kiosk'");
    expect(await readIds()).toEqual([]);
    const client = await connect();
    await client.query('BEGIN');
    await client.query("UPDATE clients SET description = 'another kiosk' WHERE id = 'kiosk'");
    const beforeMs = Date.now();
    await client.query('COMMIT');
    const { changes } = await readToEnd(reader);
    expect(changes.map(([clientId]) => clientId)).toEqual(['kiosk']);
    // Tokens that were issued before the commit carry an earlier time.
    expect(changes[0]?.[1]).toBeGreaterThanOrEqual(beforeMs);
    await admin.query('DROP TABLE clients; DROP FUNCTION client_changed');
  });
});

/** The SQL of docs/generations.md. */
function documentedTrigger(): string {
  const page = readFileSync(join(__dirname, '../../../docs/generations.md'), 'utf8');
  return /```sql\n(CREATE FUNCTION client_changed[^`]*)```/.exec(page)?.[1] ?? 'the page has no trigger';
}

describe('a transaction that stays open', () => {
  it('after its INSERT holds nobody up, and its change arrives with its commit', async () => {
    const open = await appendWithoutCommit('late');
    await admin.query(INSERT, ['plain', NOW]);
    await opened.source.append([['appended', NOW]]);
    const mark = markOf(1);
    expect(await opened.source.append([['published', NOW]], { expected: undefined, mark })).toEqual(mark);
    expect(await readIds()).toEqual(['plain', 'appended', 'published']);
    const waiting = nextIds();
    await open.query('COMMIT');
    expect(await waiting).toEqual(['late']);
    expect(await readIds()).toEqual([]);
  });

  it.each(['BEGIN', 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'BEGIN ISOLATION LEVEL SERIALIZABLE'])(
    'commits after later ones at any isolation level: %s',
    async (begin) => {
      const open = await appendWithoutCommit('late', begin);
      for (let unit = 1; unit <= 3; unit++) {
        const expected = unit === 1 ? undefined : markOf(unit - 1);
        await opened.source.append([[`client-${unit}`, NOW]], { expected, mark: markOf(unit) });
        await admin.query(INSERT, [`plain-${unit}`, NOW]);
      }
      await readIds();
      await open.query('COMMIT');
      expect(await readIds()).toEqual(['late']);
    },
  );

  it('after it has taken its position holds others up, so that none is read before it', async () => {
    const open = await appendWithoutCommit('first');
    await open.query('SET CONSTRAINTS ALL IMMEDIATE');
    const mark = markOf(1);
    const appended = Promise.all([
      opened.source.append([['second', NOW]], { expected: undefined, mark }),
      admin.query(INSERT, ['third', NOW]),
    ]);
    const waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    await eventually('both wait', async () => (await admin.query(waiting)).rows.length === 2);
    expect(await readIds()).toEqual([]);
    await open.query('COMMIT');
    await appended;
    const ids = await readIds();
    expect([ids[0], ids.slice(1).sort()]).toEqual(['first', ['second', 'third']]);
  });

  it('makes no read larger', async () => {
    const bytesOf = async (read: () => Promise<unknown>): Promise<number> => {
      const { rows } = await admin.query<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE query LIKE '%json_build_object%' AND pid <> pg_backend_pid()",
      );
      expect(rows).toHaveLength(1);
      const stream = streamOf(opened);
      const before = stream.bytesRead;
      await read();
      return stream.bytesRead - before;
    };
    const quiet = await bytesOf(() => reader.next(0));
    const open = await appendWithoutCommit('late');
    const changes = Array.from({ length: 2_000 }, (_, index): Change => [`client-${index}`, NOW]);
    await opened.source.append(changes, { expected: undefined, mark: markOf(1) });
    expect(await readIds()).toHaveLength(2_000);
    const busy = await bytesOf(() => reader.next(0));
    // The mark is new.
    expect(busy).toBeLessThan(quiet + 200);
    await open.query('ROLLBACK');
    expect(await readIds()).toEqual([]);
  });

  it('and changes its row, takes it back, or rolls back to a savepoint, appends what it commits', async () => {
    const open = await appendWithoutCommit('changed');
    await open.query('UPDATE tillgate_generations SET generation = generation + 1');
    await open.query(INSERT, ['deleted', NOW]);
    await open.query("DELETE FROM tillgate_generations WHERE client_id = 'deleted'");
    await open.query('SAVEPOINT one');
    await open.query(INSERT, ['rolled back', NOW]);
    await open.query('ROLLBACK TO one');
    await open.query(INSERT, ['kept', NOW]);
    await open.query('RELEASE one');
    await open.query('COMMIT');
    expect((await readToEnd(reader)).changes).toEqual([
      ['changed', NOW + 1],
      ['kept', NOW],
    ]);
  });
});

/** The socket of the only reader. */
function streamOf({ pool }: OpenSource): { readonly bytesRead: number } {
  const { _clients } = pool as unknown as { _clients: { connection: { stream: { bytesRead: number } } }[] };
  return (_clients[0] as (typeof _clients)[number]).connection.stream;
}

describe('many transactions at the same time', () => {
  it('are read once each, none is left out, by a reader that never stops', async () => {
    const writers = await Promise.all(Array.from({ length: 8 }, connect));
    const rounds = 100;
    const committed: string[] = [];
    let isWriting = true;
    const writing = Promise.all(
      writers.map(async (client, writer) => {
        for (let round = 0; round < rounds; round++) {
          const ids = Array.from({ length: 1 + (round % 3) }, (_, index) => `${writer}-${round}-${index}`);
          await client.query('BEGIN');
          for (const id of ids) await client.query(INSERT, [id, NOW]);
          // A part of them stays open while others commit.
          if ((writer + round) % 4 === 0) await new Promise((resolve) => setTimeout(resolve, round % 7));
          const isKept = round % 5 !== 4;
          await client.query(isKept ? 'COMMIT' : 'ROLLBACK');
          if (isKept) committed.push(...ids);
        }
      }),
    ).finally(() => (isWriting = false));
    const publishing = (async () => {
      for (let unit = 1; isWriting; unit++) {
        const expected = unit === 1 ? undefined : markOf(unit - 1);
        await opened.source.append([[`unit-${unit}`, NOW]], { expected, mark: markOf(unit) });
        committed.push(`unit-${unit}`);
      }
    })();
    const read: string[] = [];
    while (isWriting) read.push(...(await readIds()));
    await Promise.all([writing, publishing]);
    read.push(...(await readIds()));
    expect(read).toHaveLength(new Set(read).size);
    expect([...read].sort()).toEqual([...committed].sort());
    // In the order in which they were read: what a new reader finds.
    expect((await readAll(opened)).map(([clientId]) => clientId)).toEqual(read);
  });
});
