import { Redis } from 'ioredis';
import { generationSourceCases } from '../../../src/testing/source-cases/source-cases';
import type { GenerationSourceFixture } from '../../../src/testing/source-cases/harness';
import { startRedisCluster } from '../support/redis-cluster';
import type { RedisCluster } from '../support/redis-cluster';
import { anyRedis } from '../support/redis-server';
import { stalled, startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import { byIoredis, byIoredisCluster, byNodeRedis, byNodeRedisCluster, openSource, snapshotOf } from './fixtures';
import type { Connect, OpenSource } from './fixtures';

let fixtures = 0;

/** A key for every case, so that a server that was given is left as it was. */
async function create(
  connect: Connect,
  admins: readonly Redis[],
  url: string,
  wire?: TcpProxy,
): Promise<GenerationSourceFixture> {
  const key = `tillgate:case:${process.pid}:${++fixtures}`;
  const opened: OpenSource[] = [];
  async function open() {
    const next = await openSource(connect, url, { key });
    opened.push(next);
    return next.source;
  }
  const source = await open();
  /** Of the server that has the key. */
  async function admin(): Promise<Redis> {
    for (const candidate of admins) {
      const isThere = await candidate.exists(key).then(
        () => true,
        () => false,
      );
      if (isThere) return candidate;
    }
    throw new Error('no server has the key');
  }
  return {
    source,
    another: open,
    async disconnect() {
      let killed = 0;
      for (const each of admins) {
        const connections = String(await each.client('LIST')).split('\n');
        for (const line of connections.filter((candidate) => candidate.includes(` name=${key} `))) {
          await each.client('KILL', 'ID', /^id=(\d+)/.exec(line)?.[1] ?? '0');
          killed++;
        }
      }
      expect(killed).toBeGreaterThan(0);
    },
    wipe: async () => void (await (await admin()).del(key, `{${key}}:mark`)),
    async snapshot() {
      const server = await admin();
      return snapshotOf(server, key);
    },
    ...(wire && { stall: () => stalled(wire) }),
    async close() {
      for (const each of opened) await each.close();
      await wire?.close();
      await (await admin()).del(key, `{${key}}:mark`);
    },
  };
}

describe('redisGenerations with a real server', () => {
  let url: string;
  let admin: Redis;
  let stop: () => Promise<void>;

  beforeAll(async () => {
    const server = await anyRedis();
    ({ url } = server);
    stop = () => server.stop();
    admin = new Redis(url);
  });

  afterAll(async () => {
    admin.disconnect();
    await stop();
  });

  describe.each([
    ['ioredis (RESP3)', byIoredis(3), 10_000],
    ['ioredis (RESP2)', byIoredis(2), 2_500],
    ['node-redis (RESP3)', byNodeRedis(3), 2_500],
    ['node-redis (RESP2)', byNodeRedis(2), 2_500],
  ])('by %s', (_, connect, changes) => {
    /** Through a wire, which a case can freeze. */
    async function createBehindWire(): Promise<GenerationSourceFixture> {
      const wired = new URL(url);
      const wire = await startTcpProxy(Number(wired.port));
      wired.port = String(wire.port);
      return create(connect, [admin], wired.href, wire);
    }
    const cases = generationSourceCases({ create: createBehindWire, changes, timeoutMs: 10_000 });
    it.each(cases)('$name', ({ run }) => run());
  });
});

describe('redisGenerations with a cluster of three servers', () => {
  let cluster: RedisCluster;
  let admins: readonly Redis[];

  beforeAll(async () => {
    cluster = await startRedisCluster();
    admins = cluster.servers.map(({ url }) => new Redis(url));
  });

  afterAll(async () => {
    for (const admin of admins) admin.disconnect();
    await cluster.stop();
  });

  describe.each([
    ['ioredis', byIoredisCluster],
    ['node-redis', byNodeRedisCluster],
  ])('by %s', (_, connect) => {
    const cases = generationSourceCases({
      create: () => create(connect, admins, cluster.url),
      changes: 2_500,
      timeoutMs: 10_000,
    });
    it.each(cases)('$name', ({ run }) => run());
  });
});
