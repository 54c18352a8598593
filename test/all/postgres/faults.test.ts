import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import { openSource, startVerifier, verdict } from './fixtures';
import type { OpenSource } from './fixtures';

const OLD = Date.now() - 60_000;
const FLOOR = OLD + 1;

let server: PostgresServer;
let wire: TcpProxy;
/** Reads through the wire, as a resource server elsewhere. */
let reader: OpenSource;
/** Writes directly. */
let writer: OpenSource;
let tests = 0;
let table: string;

beforeAll(async () => {
  server = await startPostgres();
});

beforeEach(async () => {
  wire = await startTcpProxy(server.port);
  const throughWire = `postgres://postgres@127.0.0.1:${wire.port}/postgres`;
  table = `floors_${++tests}`;
  const bounds = { table, timeoutMs: 500, heartbeatMs: 200 };
  reader = openSource({ connectionString: throughWire, application_name: 'reader' }, bounds);
  writer = openSource({ connectionString: server.url }, { table });
  await writer.source.publish('pos', FLOOR);
});

afterEach(async () => {
  await Promise.all([reader.close(), writer.close()]);
  await wire.close();
});

afterAll(() => server.stop());

async function terminate(kind: 'LISTEN' | 'all'): Promise<number> {
  const { rows } = await writer.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'reader'
      AND ($1 = 'all' OR query LIKE '%LISTEN%' OR query LIKE '%pg_listening_channels%')`,
    [kind],
  );
  return rows.length;
}

describe('a server that is killed and started again', () => {
  it('keeps what it had: a process that knew the floor holds it all the time, a cold one gets it', async () => {
    const verifier = startVerifier(reader.source, { pollMs: 200, readTimeoutMs: 1_000 });
    await verifier.ready();
    await server.kill();
    await eventually('a failed read', () => verifier.status().failures > 0);
    expect(verdict(verifier, 'pos', OLD)).toBe('superseded');
    expect(verdict(verifier, 'pos', FLOOR)).toBe('admitted');

    const cold = startVerifier(writer.source, { pollMs: 200, maxStalenessMs: 2_000 });
    await eventually('its first attempt', () => cold.status().failures > 0);
    // Nothing is known, so nothing passes, whatever its generation.
    expect(verdict(cold, 'pos', OLD)).toBe('generations_unavailable');
    expect(verdict(cold, 'pos', FLOOR)).toBe('generations_unavailable');

    await server.start();
    await cold.ready();
    expect(verdict(cold, 'pos', OLD)).toBe('superseded');
    expect(verdict(cold, 'pos', FLOOR)).toBe('admitted');
    await cold.close();

    await writer.source.publish('pos', FLOOR + 1);
    await eventually('the change after the restart', () => verdict(verifier, 'pos', FLOOR) === 'superseded');
    await verifier.close();
  });

  it('refuses with 503 past the bound of staleness, and recovers by itself', async () => {
    const verifier = startVerifier(reader.source, { pollMs: 100, readTimeoutMs: 500, maxStalenessMs: 1_000 });
    await verifier.ready();
    await server.kill();
    await eventually('staleness', () => verdict(verifier, 'pos', FLOOR) === 'generations_unavailable');
    expect(verdict(verifier, 'pos', OLD)).toBe('superseded');
    expect(verifier.status().lastError).toMatch(/^PostgreSQL: /);
    await server.start();
    await eventually('recovery', () => verdict(verifier, 'pos', FLOOR) === 'admitted');
    expect(verdict(verifier, 'pos', OLD)).toBe('superseded');
    await verifier.close();
  });
});

describe('the connection that listens', () => {
  it('is asked for again when the server ends it; meanwhile polling goes on', async () => {
    const verifier = startVerifier(reader.source, { pollMs: 100 });
    await verifier.ready();
    const before = wire.connections;
    expect(await terminate('LISTEN')).toBeGreaterThan(0);
    await writer.source.publish('pos', FLOOR + 10);
    await eventually('the change by polling', () => verdict(verifier, 'pos', FLOOR + 9) === 'superseded');
    await eventually('another connection', () => wire.connections > before);
    await verifier.close();
  });

  it('brings hints again after it was cut, and what moved in the meantime', async () => {
    const verifier = startVerifier(reader.source);
    await verifier.ready();
    await terminate('all');
    await writer.source.publish('pos', FLOOR + 20);
    await eventually('the change in the gap', () => verdict(verifier, 'pos', FLOOR + 19) === 'superseded');
    await writer.source.publish('pos', FLOOR + 21);
    await eventually('the change after it', () => verdict(verifier, 'pos', FLOOR + 20) === 'superseded');
    await verifier.close();
  });

  it('tells a watch once that it is lost', async () => {
    const lost = jest.fn();
    await reader.source.watch(() => undefined, lost);
    await terminate('all');
    await eventually('the loss', () => lost.mock.calls.length > 0);
    expect(String(lost.mock.calls)).toBe('SourceError: PostgreSQL: the server has ended the connection (57P01)');
    await reader.source.close();
    expect(lost).toHaveBeenCalledTimes(1);
  });
});

describe('a half-open connection', () => {
  it('is noticed by the heartbeat of the watch', async () => {
    const lost = jest.fn();
    await reader.source.watch(() => undefined, lost);
    wire.freeze();
    await eventually('the loss', () => lost.mock.calls.length > 0, 5_000);
    expect(String(lost.mock.calls)).toBe('SourceError: PostgreSQL: no response within 500 ms');
  });

  it('costs time only: what was known is held, and reads and hints come back on other connections', async () => {
    const verifier = startVerifier(reader.source, { pollMs: 300, readTimeoutMs: 1_000, maxStalenessMs: 3_000 });
    await verifier.ready();
    wire.freeze();
    await writer.source.publish('pos', FLOOR + 30);
    await eventually('staleness', () => verdict(verifier, 'pos', FLOOR + 30) === 'generations_unavailable');
    expect(verdict(verifier, 'pos', OLD)).toBe('superseded');
    wire.thaw();
    await eventually('the change beyond the dead wire', () => verdict(verifier, 'pos', FLOOR + 29) === 'superseded');
    // A page is merged before the read that it belongs to is complete.
    await eventually('a complete read', () => verdict(verifier, 'pos', FLOOR + 30) === 'admitted');
    await verifier.close();
  });

  it('does not keep its places in the pool', async () => {
    await reader.source.read(0);
    wire.freeze();
    const attempts = Array.from({ length: 8 }, () => reader.source.read(0));
    const outcomes = await Promise.allSettled(attempts);
    expect(outcomes.map(({ status }) => status)).toEqual(attempts.map(() => 'rejected'));
    await eventually('an empty pool', () => reader.pool.totalCount === reader.pool.idleCount);
    wire.thaw();
    await eventually('a read', () =>
      reader.source.read(0).then(
        () => true,
        () => false,
      ),
    );
  });
});
