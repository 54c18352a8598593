import { writeFile } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { ends, startAuthorizationServer, startProcess, untilCurrent } from '../faults/generation-scene';
import { eventually } from '../support/eventually';
import { startRedisCluster } from '../support/redis-cluster';
import { freePort } from '../support/free-port';
import { startRedis } from '../support/redis-server';
import type { RedisServer } from '../support/redis-server';
import { byIoredisCluster, byIoredisSentinel, byNodeRedisCluster, byNodeRedisSentinel, openSource } from './fixtures';
import type { Connect } from './fixtures';

const opened = ends();
afterEach(() => opened.run());

/** Starts one Redis Sentinel, whose voice alone decides; returns its URL. */
async function startSentinel(primary: RedisServer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tillgate-sentinel-'));
  const port = await freePort();
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor shop 127.0.0.1 ${primary.port} 1`,
    'sentinel down-after-milliseconds shop 500',
    'sentinel failover-timeout shop 5000',
  ];
  await writeFile(join(folder, 'sentinel.conf'), lines.join('\n'));
  const child = spawn('redis-server', [join(folder, 'sentinel.conf'), '--sentinel'], { stdio: 'ignore' });
  opened.add(async () => {
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    await rm(folder, { recursive: true });
  });
  const admin = new Redis(port, '127.0.0.1');
  admin.on('error', () => undefined);
  opened.add(() => admin.disconnect());
  await eventually('the sentinel knows the replica', async () => {
    const replicas = await admin.call('SENTINEL', 'REPLICAS', 'shop').catch(() => []);
    return Array.isArray(replicas) && replicas.length === 1;
  });
  return `redis://127.0.0.1:${port}`;
}

/** A publisher and a process, each with a client of its own. */
async function openShop(connect: Connect, url: string) {
  const [publishing, reading] = [await openSource(connect, url), await openSource(connect, url)];
  opened.add(() => publishing.close());
  opened.add(() => reading.close());
  const shop = startAuthorizationServer(publishing.source);
  opened.add(() => shop.publisher.close());
  const running = startProcess(reading.source, { pollMs: 500, readTimeoutMs: 2_000 });
  opened.add(() => running.close());
  await shop.publisher.ready();
  await shop.change('pos');
  await untilCurrent(running, shop.record);
  return { shop, running };
}

describe.each([
  ['ioredis', byIoredisSentinel],
  ['node-redis', byNodeRedisSentinel],
])('a client of Redis Sentinel, by %s', (_, connect) => {
  it('goes on with the replica that is promoted when the primary is killed', async () => {
    const primary = await startRedis();
    opened.add(() => primary.stop());
    const replica = await startRedis({ replicaOf: primary.port });
    opened.add(() => replica.stop());
    const { shop, running } = await openShop(connect, await startSentinel(primary));
    await primary.kill();
    await eventually('a change in the log of the new primary', () => shop.change('pos'));
    await untilCurrent(running, shop.record);
  });
});

describe.each([
  ['ioredis', byIoredisCluster],
  ['node-redis', byNodeRedisCluster],
])('a client of a cluster, by %s', (_, connect) => {
  it('goes on when the server that has the key was killed and is back, empty', async () => {
    const cluster = await startRedisCluster();
    opened.add(() => cluster.stop());
    const { shop, running } = await openShop(connect, cluster.url);
    const keys = await Promise.all(cluster.servers.map((server) => server.command('DBSIZE')));
    const owner = cluster.servers[keys.findIndex((count) => Number(count) > 0)] as RedisServer;
    await owner.kill();
    expect(await shop.change('pos')).toBe(false);
    await owner.start();
    await eventually('a change in the log', () => shop.change('pos'));
    await untilCurrent(running, shop.record);
  });
});
