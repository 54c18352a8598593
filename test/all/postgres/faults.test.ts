import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Change } from '../../../src/gate/generation/log';
import { startAuthorizationServer, startProcess, verdict } from '../faults/generation-scene';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import { openSource, readAll, readToEnd } from './fixtures';
import type { OpenSource } from './fixtures';

const NOW = Date.now();

let server: PostgresServer;
let wire: TcpProxy;
/** Through the wire, as a process elsewhere. */
let far: OpenSource;
/** Directly. */
let near: OpenSource;
let tests = 0;
let table: string;

beforeAll(async () => {
  server = await startPostgres();
});

beforeEach(async () => {
  wire = await startTcpProxy(server.port);
  table = `log_${++tests}`;
  const throughWire = `postgres://postgres@127.0.0.1:${wire.port}/postgres`;
  far = openSource({ connectionString: throughWire, application_name: 'far' }, { table, timeoutMs: 500 });
  near = openSource({ connectionString: server.url }, { table });
});

afterEach(async () => {
  await Promise.all([far.close(), near.close()]);
  await wire.close();
});

afterAll(() => server.stop());

describe('a server that is killed and started again', () => {
  it('costs a reader what moved', async () => {
    const changes = Array.from({ length: 100 }, (_, index): Change => [`client-${index}`, NOW]);
    await near.source.append(changes);
    const reader = near.source.reader();
    await readToEnd(reader);
    await server.kill();
    // A process of the server may still respond for a moment.
    await eventually('the server is gone', () =>
      reader.next(0).then(
        () => false,
        () => true,
      ),
    );
    await expect(reader.next(0)).rejects.toThrow(/^PostgreSQL: /);
    await server.start();
    await near.source.append([['pos', NOW]]);
    expect((await readToEnd(reader)).changes).toEqual([['pos', NOW]]);
  });
});

it('a half-open connection does not keep its place in the pool', async () => {
  await readAll(far);
  wire.freeze();
  const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => far.source.append([['pos', NOW]])));
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']));
  await eventually('an empty pool', () => far.pool.totalCount === far.pool.idleCount);
  wire.thaw();
  await eventually('an append', () =>
    far.source.append([['pos', NOW]]).then(
      () => true,
      () => false,
    ),
  );
});

it('a server that dies while a connection opens, and says so in one packet, ends no process', async () => {
  const message = (type: string, body: Buffer): Buffer => {
    const head = Buffer.alloc(5);
    head.write(type);
    head.writeInt32BE(body.length + 4, 1);
    return Buffer.concat([head, body]);
  };
  const died = 'SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0';
  const packet = [message('R', Buffer.alloc(4)), message('Z', Buffer.from('I')), message('E', Buffer.from(died))];
  const dying = createServer((socket) => {
    socket.once('data', () => socket.end(Buffer.concat(packet)));
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => dying.listen(0, '127.0.0.1', resolve));
  const { port } = dying.address() as AddressInfo;
  const opened = openSource({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` });
  await expect(readAll(opened)).rejects.toThrow(/^PostgreSQL: /);
  await opened.close();
  await new Promise((resolve) => dying.close(resolve));
});

describe('a log that is restored from an older dump', () => {
  it.each(['while the publisher runs', 'while it is away'])('gets back what it lost: %s', async (when) => {
    let authorization = startAuthorizationServer(near.source);
    await authorization.change('before');
    const dump = await server.tool('pg_dump', ['--clean', '--if-exists']);
    const lost = Array.from({ length: 12 }, (_, index) => `lost-${index}`);
    expect(await Promise.all(lost.map((clientId) => authorization.change(clientId)))).toEqual(lost.map(() => true));
    const reader = near.source.reader();
    await readToEnd(reader);
    const record = new Map(authorization.record);
    if (when === 'while it is away') authorization.publisher.close();
    await server.tool('psql', ['-q', '-1', '-v', 'ON_ERROR_STOP=1'], dump);
    if (when === 'while it is away') {
      expect(new Map(await readAll(near)).has('lost-0')).toBe(false);
      const silent = startProcess(near.source, { pollMs: 50, maxSilenceMs: 1, skewMs: 0 });
      await silent.settled();
      expect(verdict(silent, 'before', Date.now())).toBe('generations_unavailable');
      await silent.close();
      authorization = startAuthorizationServer(near.source, { record });
    }
    await authorization.change('after');
    const isBack = async () => new Map(await readAll(near)).size === authorization.record.size;
    await eventually('every change', () => isBack().catch(() => false));
    expect(new Map(await readAll(near))).toEqual(authorization.record);
    const known = new Map<string, number>();
    await eventually('the same for the reader', async () => {
      const { changes } = await readToEnd(reader).catch(() => ({ changes: [] }));
      for (const change of changes) known.set(...change);
      return known.has('after');
    });
    authorization.publisher.close();
  });
});

describe('two logs in one history', () => {
  it('a row that has the position of another one that was lost is read', async () => {
    await near.source.append([['pos', NOW]]);
    const reader = near.source.reader();
    await near.source.append([['lost', NOW]]);
    await readToEnd(reader);
    // What a restored file system does: the row and the step of the sequence are gone.
    await near.pool.query(`DELETE FROM ${table} WHERE client_id = 'lost'; SELECT setval('${table}_position', 1)`);
    await near.source.append([['new', NOW]]);
    const { rows } = await near.pool.query(`SELECT position FROM ${table} WHERE client_id = 'new'`);
    expect(rows).toEqual([{ position: '2' }]);
    expect((await readToEnd(reader)).changes).toEqual([
      ['pos', NOW],
      ['new', NOW],
    ]);
  });
});
