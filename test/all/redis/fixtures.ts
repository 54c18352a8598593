import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster, createSentinel } from 'redis';
import type { GenerationSource } from '../../../src/gate/generation/log';
import type { RedisClient } from '../../../src/stores/redis/connection';
import { redisGenerations } from '../../../src/stores/redis/log';
import type { RedisGenerationsOptions } from '../../../src/stores/redis/log';
import type { Ends } from '../faults/generation-scene';
import { startRedis } from '../support/redis-server';
import type { RedisServer, RedisServerOptions } from '../support/redis-server';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';

/** A client and how it ends. */
export interface Connected {
  readonly client: RedisClient;
  readonly end: () => unknown;
}

/** Connects by one of the two packages; `name` is what the server knows the connection by. */
export type Connect = (url: string, name: string) => Promise<Connected>;

export const byIoredis =
  (protocol: 2 | 3 = 3): Connect =>
  (url, connectionName) => {
    const client = new Redis(url, { connectionName, protocol });
    client.on('error', () => undefined);
    return Promise.resolve({ client, end: () => client.disconnect() });
  };

export const byNodeRedis =
  (RESP: 2 | 3 = 3): Connect =>
  async (url, name) => {
    const client = createClient({ url, name, RESP });
    client.on('error', () => undefined);
    await client.connect();
    return { client, end: () => client.destroy() };
  };

/** To a cluster, of which the URL names one server. */
export const byIoredisCluster: Connect = (url, connectionName) => {
  const client = new Cluster([url], { redisOptions: { connectionName } });
  client.on('error', () => undefined);
  return Promise.resolve({ client, end: () => client.disconnect() });
};

export const byNodeRedisCluster: Connect = async (url, name) => {
  const client = createCluster({ rootNodes: [{ url }], defaults: { name } });
  client.on('error', () => undefined);
  await client.connect();
  return { client, end: () => client.destroy() };
};

/** To the primary that Redis Sentinel names; the URL is that of a sentinel. */
export const byIoredisSentinel: Connect = (url, connectionName) => {
  const { hostname: host, port } = new URL(url);
  const client = new Redis({ sentinels: [{ host, port: Number(port) }], name: 'shop', connectionName });
  client.on('error', () => undefined);
  return Promise.resolve({ client, end: () => client.disconnect() });
};

export const byNodeRedisSentinel: Connect = async (url, connectionName) => {
  const { hostname: host, port } = new URL(url);
  const options = { name: 'shop', sentinelRootNodes: [{ host, port: Number(port) }] };
  const client = createSentinel({ ...options, nodeClientOptions: { name: connectionName } });
  client.on('error', () => undefined);
  await client.connect();
  return { client, end: () => client.destroy() };
};

/** A source with the client that it uses, as one process has them. */
export interface OpenSource {
  readonly source: GenerationSource;
  close(): Promise<void>;
}

export async function openSource(
  connect: Connect,
  url: string,
  options: Partial<Omit<RedisGenerationsOptions, 'client'>> = {},
): Promise<OpenSource> {
  const { client, end } = await connect(url, options.key ?? 'test');
  const source = redisGenerations({ client, ...options });
  return {
    source,
    async close() {
      await source.close?.();
      await end();
    },
  };
}

/** The state of a log, its stream and its mark; the returned function puts it back. */
export async function snapshotOf(server: Redis, key: string): Promise<() => Promise<void>> {
  const keys = [key, `{${key}}:mark`];
  const dumps = await Promise.all(keys.map((one) => server.dumpBuffer(one)));
  return async () => {
    const transaction = server.multi().del(...keys);
    // A key that did not exist has no dump.
    keys.forEach((one, at) => dumps[at] && transaction.restore(one, 0, dumps[at]));
    await transaction.exec();
  };
}

/** Starts servers, wires and sources that `opened` ends. */
export interface RedisStand {
  server: (options?: RedisServerOptions) => Promise<RedisServer>;
  /** A wire to a server, which the test can cut, freeze or delay. */
  wireTo: (server: Pick<RedisServer, 'port'>) => Promise<TcpProxy & { readonly url: string }>;
  open: (connect: Connect, url: string, timeoutMs?: number) => Promise<GenerationSource>;
}

export function redisStand(opened: Ends): RedisStand {
  return {
    async server(options) {
      const started = await startRedis(options);
      opened.add(() => started.stop());
      return started;
    },
    async wireTo({ port }) {
      const wire = await startTcpProxy(port);
      opened.add(() => wire.close());
      return Object.assign(wire, { url: `redis://127.0.0.1:${wire.port}` });
    },
    async open(connect, url, timeoutMs = 1_000) {
      const source = await openSource(connect, url, { timeoutMs });
      opened.add(() => source.close());
      return source.source;
    },
  };
}
