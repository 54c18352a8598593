import { ends, keepChanging, startAuthorizationServer, startProcess, untilCurrent } from '../faults/generation-scene';
import type { AuthorizationServer } from '../faults/generation-scene';
import { eventually } from '../support/eventually';
import type { RedisServer } from '../support/redis-server';
import { byIoredis, byNodeRedis, openSource, redisStand } from './fixtures';
import type { Connect } from './fixtures';

/** `FAULTS=40 npm run test:all -- redis/campaigns` takes a quarter of an hour. */
const FAULTS = Number(process.env['FAULTS'] ?? 4);
const PER_SECOND = 20;
const KEY = 'tillgate:generations';
const LIMIT_MS = 120_000 + FAULTS * 30_000;

const opened = ends();
afterEach(() => opened.run());

const { server, wireTo, open } = redisStand(opened);

const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

async function publish(connect: Connect, url: string): Promise<AuthorizationServer> {
  const shop = startAuthorizationServer(await open(connect, url), { timeoutMs: 1_000 });
  opened.add(() => shop.publisher.close());
  await shop.publisher.ready();
  return shop;
}

/** Of what was acknowledged before this call, the clients whose change is not in a log that its mark calls complete. */
async function lostBy(connect: Connect, url: string, record: ReadonlyMap<string, number>): Promise<string[]> {
  const acknowledged = new Map(record);
  const nowMs = Date.now();
  const log = await openSource(connect, url, { timeoutMs: 1_000 });
  const known = new Map<string, number>();
  const reader = log.source.reader();
  await eventually('a complete log', async () => {
    const batch = await reader.next(500).catch(() => undefined);
    for (const [id, generation] of batch?.changes ?? []) known.set(id, Math.max(generation, known.get(id) ?? 0));
    return (batch?.mark?.completeMs ?? 0) > nowMs;
  });
  await log.close();
  return [...acknowledged].filter(([id, generation]) => (known.get(id) ?? 0) < generation).map(([id]) => id);
}

describe.each([
  ['ioredis', byIoredis()],
  ['node-redis', byNodeRedis()],
])('acknowledged changes, by %s', (_, connect) => {
  it(
    `are all in force after ${FAULTS} failovers to a replica that is 20 to 200 ms behind, ${PER_SECOND} changes a second`,
    async () => {
      let primary = await server();
      const wire = await wireTo(primary);
      const shop = await publish(connect, wire.url);
      const running = startProcess(await open(connect, wire.url), { readTimeoutMs: 1_000 });
      opened.add(() => running.close());
      const changes = keepChanging(shop, PER_SECOND);
      let undone = 0;
      for (let n = 0; n < FAULTS; n++) {
        const lag = await wireTo(primary);
        const replica = await server({ replicaOf: lag.port });
        await eventually('replication', async () => /master_link_status:up/.test(await info(replica)));
        lag.delay(() => 20 + Math.random() * 180);
        await pause(300 + Math.random() * 700);
        const [had, has] = [Number(await primary.command('XLEN', KEY)), Number(await replica.command('XLEN', KEY))];
        if (had > has) undone++;
        await replica.promote();
        wire.switchTo(replica.port);
        await primary.stop();
        primary = replica;
        expect(await lostBy(connect, primary.url, shop.record)).toEqual([]);
      }
      // Otherwise nothing was tested.
      expect(undone).toBeGreaterThan(0);
      await changes.stop();
      await untilCurrent(running, shop.record);
      const cold = startProcess(await open(connect, wire.url));
      opened.add(() => cold.close());
      await untilCurrent(cold, shop.record);
    },
    LIMIT_MS,
  );

  it(
    `are all in force after ${FAULTS} wipes, with the publisher 100 ms away`,
    async () => {
      const redis = await server();
      const wire = await wireTo(redis);
      wire.delay(() => 50);
      const shop = await publish(connect, wire.url);
      const changes = keepChanging(shop, PER_SECOND);
      for (let n = 0; n < FAULTS; n++) {
        await pause(Math.random() * 1_000);
        await redis.command('FLUSHALL');
        expect(await lostBy(connect, redis.url, shop.record)).toEqual([]);
      }
      await changes.stop();
      const cold = startProcess(await open(connect, redis.url));
      opened.add(() => cold.close());
      await untilCurrent(cold, shop.record);
    },
    LIMIT_MS,
  );
});

async function info(redis: RedisServer): Promise<string> {
  return String(await redis.command('INFO', 'replication'));
}
