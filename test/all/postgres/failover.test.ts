import { ends, startAuthorizationServer, startProcess, unknownTo, untilCurrent } from '../faults/generation-scene';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import { openSource, quietPool, readAll } from './fixtures';

/** `TILLGATE_TEST_FAILOVERS=40` is the campaign of docs/maintainers/generations.md. */
const FAILOVERS = Number(process.env['TILLGATE_TEST_FAILOVERS'] ?? 3);
const CHANGES_PER_SECOND = 20;

const closing = ends();

afterEach(() => closing.run());

/** A standby that follows asynchronously, each packet late by up to 200 ms. */
async function lagging(primary: PostgresServer): Promise<{ standby: PostgresServer; wire: TcpProxy }> {
  const wire = await startTcpProxy(primary.port);
  const standby = await startPostgres({ standbyOf: wire });
  wire.delay(() => 20 + Math.random() * 180);
  return { standby, wire };
}

async function promote(standby: PostgresServer): Promise<void> {
  const admin = quietPool(standby.url);
  // Without waiting: what is replayed meanwhile may cancel the statement.
  await admin.query('SELECT pg_promote(false)');
  await eventually('the standby is promoted', async () => {
    const { rows } = await admin.query('SELECT WHERE NOT pg_is_in_recovery()');
    return rows.length > 0;
  });
  await admin.end();
}

it(
  `${FAILOVERS} failovers to a standby that lags lose no change for ever`,
  async () => {
    let primary = await startPostgres();
    closing.add(() => primary.stop());
    const front = await startTcpProxy(primary.port);
    closing.add(() => front.close());
    const url = `postgres://postgres@127.0.0.1:${front.port}/postgres`;
    const open = () => openSource({ connectionString: url }, { timeoutMs: 1_000 });
    const [writer, reader] = [open(), open()];
    closing.add(() => Promise.all([writer.close(), reader.close()]));
    const authorization = startAuthorizationServer(writer.source, { timeoutMs: 1_000 });
    closing.add(() => authorization.publisher.close());
    const running = startProcess(reader.source, { pollMs: 500 });
    closing.add(() => running.close());
    await authorization.publisher.ready();

    let published = 0;
    let lost = 0;
    for (let failover = 0; failover < FAILOVERS; failover++) {
      const { standby, wire } = await lagging(primary);
      let isChanging = true;
      const changing = (async () => {
        for (let n = 0; isChanging; n++) {
          void authorization.change(`client-${failover}-${n}`).then((isIn) => (published += Number(isIn)));
          await new Promise((resolve) => setTimeout(resolve, 1_000 / CHANGES_PER_SECOND));
        }
      })();
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      const before = new Map(authorization.record);
      await primary.kill();
      await promote(standby);
      await wire.close();
      const copy = openSource({ connectionString: standby.url });
      const survived = new Map(await readAll(copy));
      lost += [...before.keys()].filter((clientId) => !survived.has(clientId)).length;
      front.switchTo(standby.port);
      isChanging = false;
      await changing;

      // Accepted nowhere: a process that starts is ready only once it knows every change.
      const cold = startProcess(reader.source, { pollMs: 100 });
      await cold.ready();
      const missing = unknownTo(cold, before);
      await cold.close();
      await eventually('nothing is pending', () => {
        const { state, pending } = authorization.publisher.status();
        return state === 'current' && pending === 0;
      });
      expect(new Map(await readAll(copy))).toEqual(authorization.record);
      await untilCurrent(running, authorization.record);
      expect(missing).toEqual([]);
      await copy.close();
      await primary.stop();
      primary = standby;
    }
    // Otherwise this test has tested nothing.
    expect({ isPublished: published > 0, isLost: lost > 0 }).toEqual({ isPublished: true, isLost: true });
  },
  120_000 + FAILOVERS * 60_000,
);
