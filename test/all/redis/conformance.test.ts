import { Redis } from 'ioredis';
import { generationSourceCases } from '../../../src/testing';
import type { GenerationSourceFixture } from '../../../src/testing';
import { anyRedis } from '../support/redis-server';
import { byIoredis, byNodeRedis, openSource } from './fixtures';
import type { Connect, OpenSource } from './fixtures';

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

/** A key for every case, so that a server that was given is left as it was. */
async function create(connect: Connect): Promise<GenerationSourceFixture> {
  const key = `tillgate:case:${process.pid}:${++fixtures}`;
  const opened: OpenSource[] = [];
  async function open() {
    // The cases publish numbers from 2001 on.
    const next = await openSource(connect, url, { key, maxTokenAgeMs: 1e12 });
    opened.push(next);
    return next.source;
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
      for (const each of opened) await each.close();
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
