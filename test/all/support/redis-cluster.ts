import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { requireCommand } from '../setup/packages';
import { eventually } from './eventually';
import { freePort } from './free-port';
import { startRedis } from './redis-server';
import type { RedisServer } from './redis-server';

/** A Redis Cluster of three primaries. */
export interface RedisCluster {
  readonly servers: readonly RedisServer[];
  /** Of one of them. */
  readonly url: string;
  stop(): Promise<void>;
}

export async function startRedisCluster(): Promise<RedisCluster> {
  requireCommand('redis-cli', 'apt-get install redis-tools');
  const settings = async (): Promise<string[]> => [
    ...['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())],
    ...['--cluster-node-timeout', '2000'],
  ];
  const servers = await Promise.all([0, 1, 2].map(async () => startRedis({ settings: await settings() })));
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`);
  await promisify(execFile)('redis-cli', ['--cluster', 'create', ...hosts, '--cluster-yes']);
  await eventually('every server knows the cluster', async () => {
    const states = await Promise.all(servers.map((server) => server.command('CLUSTER', 'INFO')));
    return states.every((state) => /cluster_state:ok/.test(String(state)));
  });
  return {
    servers,
    url: servers.map(({ url }) => url)[0] ?? '',
    async stop() {
      for (const server of servers) await server.stop();
    },
  };
}
