import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Environment } from '../settings/read-variables';

/**
 * Replaces port 0 by a port that is free now. Listening on 0 is too late: addresses are part of tokens and metadata
 * before anything listens.
 */
export async function withFreePorts(env: Environment): Promise<Environment> {
  const chosen: Record<string, string> = {};
  for (const name of ['TILLGATE_PORT', 'TILLGATE_AUTH_PORT']) {
    if (env[name] === '0') chosen[name] = String(await freePort());
  }
  return { ...env, ...chosen };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}
