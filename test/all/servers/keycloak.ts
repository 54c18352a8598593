import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { missingForKeycloak, startKeycloak } from '../keycloak/keycloak-server';
import { collect, stop } from '../setup/process';
import { eventually } from '../support/eventually';
import { startRedis } from '../support/redis-server';
import { CLIENT, SCOPE } from './run-server';
import type { AuthorizationServer } from './run-server';

const ROOT = join(__dirname, '../../..');
const COMMAND = [join(ROOT, 'scripts/run-sources.cjs'), join(ROOT, 'src/cli/main.ts')] as const;

export const KEYCLOAK: AuthorizationServer = {
  name: 'Keycloak',
  version: '26.7.3',
  learns: '`tillgate bridge keycloak`, by `iat`',
  async start() {
    const missing = missingForKeycloak();
    if (missing !== undefined) throw new Error(missing);
    const [keycloak, redis, folder] = await Promise.all([
      startKeycloak(),
      startRedis(),
      mkdtemp(join(tmpdir(), 'tillgate-servers-')),
    ]);
    const secretFile = join(folder, 'bridge-secret');
    await writeFile(secretFile, 'tillgate-bridge-secret\n', { mode: 0o600 });
    const flags = ['--url', keycloak.issuer, '--client', 'tillgate-bridge', '--secret-file', secretFile];
    const args = ['--conditions=source', '-r', ...COMMAND, 'bridge', 'keycloak', ...flags];
    const bridge = spawn(process.execPath, args, {
      env: { ...process.env, TILLGATE_DATA_DIR: join(folder, 'data'), TILLGATE_GENERATIONS: redis.url },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const log = collect(bridge.stderr);
    await eventually('the bridge follows', () => log().includes('following the changes'));
    const [{ id = '' } = {}] = (await keycloak.admin(`/clients?clientId=${CLIENT}`)) as { id: string }[];
    let secret = 'till-9-secret';
    return {
      issuer: keycloak.issuer,
      options: { generationSource: redis.url },
      token: () => keycloak.token(CLIENT, secret, SCOPE),
      changes: {
        description: () => keycloak.admin(`/clients/${id}`, 'PUT', { clientId: CLIENT, description: 'Till 9, moved' }),
        secret: async () =>
          ({ value: secret } = (await keycloak.admin(`/clients/${id}/client-secret`, 'POST')) as { value: string }),
        deletion: () => keycloak.admin(`/clients/${id}`, 'DELETE'),
      },
      async stop() {
        await stop(bridge);
        await Promise.all([keycloak.stop(), redis.stop()]);
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
};
