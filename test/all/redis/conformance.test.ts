import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { redisGenerations } from '../../../src/generation/redis';
import type { RedisClient } from '../../../src/generation/redis-client';
import { generationSourceCases } from '../../../src/testing';
import type { GenerationSourceFixture } from '../../../src/testing';
import { silentLogger } from './fixtures';
import { anyRedis } from '../support/redis-server';

let url: string;
let admin: Redis;
let stopServer: () => Promise<void>;
let fixtures = 0;

beforeAll(async () => {
  const server = await anyRedis();
  url = server.url;
  stopServer = () => server.stop();
  admin = new Redis(url);
});

afterAll(async () => {
  admin.disconnect();
  await stopServer();
});

interface Connected {
  readonly client: RedisClient;
  readonly end: () => void;
}

type Connect = (name: string) => Promise<Connected>;

const byIoredis =
  (protocol: 2 | 3): Connect =>
  (connectionName) => {
    const client = new Redis(url, { connectionName, protocol });
    return Promise.resolve({ client, end: () => client.disconnect() });
  };

const byNodeRedis =
  (RESP: 2 | 3): Connect =>
  async (name) => {
    const client = createClient({ url, name, RESP });
    client.on('error', () => undefined);
    await client.connect();
    return { client: client as unknown as RedisClient, end: () => client.destroy() };
  };

/** A key for every case, so that a server that was given is left as it was. */
async function create(connect: Connect): Promise<GenerationSourceFixture> {
  const key = `tillgate:case:${process.pid}:${++fixtures}`;
  const ends: (() => void)[] = [];
  async function open() {
    const { client, end } = await connect(key);
    const source = redisGenerations({ client, key, logger: silentLogger });
    ends.push(end);
    return source;
  }
  const source = await open();
  return {
    source,
    another: open,
    async disconnect() {
      const connections = String(await admin.client('LIST')).split('\n');
      const own = connections.filter((line) => line.includes(` name=${key} `));
      for (const line of own) await admin.client('KILL', 'ID', /^id=(\d+)/.exec(line)?.[1] ?? '0');
      expect(own.length).toBeGreaterThan(0);
    },
    async close() {
      await source.close();
      for (const end of ends) end();
      await admin.del(key);
    },
  };
}

describe.each([
  ['ioredis (RESP3)', byIoredis(3)],
  ['ioredis (RESP2)', byIoredis(2)],
  ['node-redis (RESP3)', byNodeRedis(3)],
  ['node-redis (RESP2)', byNodeRedis(2)],
])('redisGenerations with %s against a real server', (_, connect) => {
  it.each(generationSourceCases({ create: () => create(connect), timeoutMs: 10_000 }))('$name', ({ run }) => run());
});
