import type { Pool } from 'pg';
import type { Follower } from '../../../src/gate/generation/follower';
import { ends, startAuthorizationServer, startProcess, untilCurrent, verdict } from '../faults/generation-scene';
import type { AuthorizationServer } from '../faults/generation-scene';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import { openSource, quietPool, readToEnd } from './fixtures';
import type { OpenSource } from './fixtures';

const closing = ends();
let standby: PostgresServer;
let toStandby: Pool;
/** Between the primary and the standby. */
let wire: TcpProxy;
let authorization: AuthorizationServer;
/** On the standby. */
let replica: OpenSource;
let process: Follower;

beforeAll(async () => {
  const primary = await startPostgres();
  closing.add(() => primary.stop());
  const writer = openSource({ connectionString: primary.url });
  closing.add(() => writer.close());
  authorization = startAuthorizationServer(writer.source);
  closing.add(() => authorization.publisher.close());
  await authorization.change('pos');
  wire = await startTcpProxy(primary.port);
  closing.add(() => wire.close());
  standby = await startPostgres({ standbyOf: wire, settings: ['wal_retrieve_retry_interval=100ms'] });
  closing.add(() => standby.stop());
  toStandby = quietPool(standby.url);
  closing.add(() => toStandby.end());
  replica = openSource({ connectionString: standby.url });
  closing.add(() => replica.close());
  process = startProcess(replica.source, { pollMs: 50, maxSilenceMs: 3_000 });
  closing.add(() => process.close());
  await process.ready();
});

afterAll(() => closing.run());

/** A change, and the generation that it discards. */
async function change(): Promise<number> {
  const old = authorization.record.get('pos') as number;
  expect(await authorization.change('pos')).toBe(true);
  return old;
}

describe('a process that reads a standby', () => {
  it('learns of a change by polling', async () => {
    const old = await change();
    await eventually('the change', () => verdict(process, 'pos', old) === 'superseded');
    await untilCurrent(process, authorization.record);
  });

  it('says what to do where it should append', async () => {
    const append = replica.source.append([['pos', 1]]);
    await expect(append).rejects.toThrow('PostgreSQL: this server is read-only; use the URL of the primary (25006)');
  });

  it.each([
    [
      'lags',
      async () => void (await toStandby.query('SELECT pg_wal_replay_pause()')),
      async () => void (await toStandby.query('SELECT pg_wal_replay_resume()')),
    ],
    [
      'is cut off',
      () => Promise.resolve(wire.freeze()),
      () => {
        wire.thaw();
        return Promise.resolve(wire.cut());
      },
    ],
  ])('refuses when it %s for too long, and knows every change when it is back', async (_fault, begin, end) => {
    await begin();
    const old = await change();
    const silent = (): boolean => verdict(process, 'pos', old) === 'generations_unavailable';
    await eventually('silence', silent);
    expect(process.status()).toMatchObject({ source: 'silent' });
    await end();
    await eventually('the change', () => verdict(process, 'pos', old) === 'superseded');
    await untilCurrent(process, authorization.record);
  });

  it('goes on when the standby is promoted, where it was, and then hears of changes immediately', async () => {
    const reader = replica.source.reader();
    expect((await readToEnd(reader)).changes.length).toBeGreaterThan(1);
    await toStandby.query('SELECT pg_promote()');
    const promoted = openSource({ connectionString: standby.url });
    closing.add(() => promoted.close());
    authorization.publisher.close();
    // By polling, then on another connection, which listens.
    expect((await readToEnd(reader)).changes).toEqual([]);
    expect((await readToEnd(reader)).changes).toEqual([]);
    const waiting = reader.next(60_000);
    await promoted.source.append([['kiosk', Date.now()]]);
    expect((await waiting).changes.map(([clientId]) => clientId)).toEqual(['kiosk']);
  });
});
