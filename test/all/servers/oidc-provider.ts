import { join } from 'node:path';
import { requirePackage } from '../setup/packages';
import { startScript } from '../setup/script';
import { startRedis } from '../support/redis-server';
import { tokenFrom } from './requests';
import { AUDIENCE, CLIENT, SCOPE } from './run-server';
import type { AuthorizationServer } from './run-server';

export const OIDC_PROVIDER: AuthorizationServer = {
  name: 'oidc-provider',
  version: requirePackage('oidc-provider', 9),
  learns: 'a stamped number, published to Redis',
  async start() {
    const redis = await startRedis();
    const parameters = { audience: AUDIENCE, scope: SCOPE };
    const script = await startScript<{ issuer: string }>(join(__dirname, 'oidc-provider-process.mjs'), parameters);
    const { issuer } = script.ready;
    let client_secret = 'secret-1';
    async function change(to: object): Promise<unknown> {
      const generation = await script.ask<number>({ id: CLIENT, ...to });
      return redis.command('XADD', 'tillgate:generations', '*', 'client_id', CLIENT, 'generation', String(generation));
    }
    await change({ values: { client_secret } });
    return {
      issuer,
      options: { generationSource: `${redis.url}?mark=off` },
      token: () => tokenFrom(`${issuer}/token`, CLIENT, client_secret, { scope: SCOPE }),
      changes: {
        description: () => change({ values: { client_name: 'Till 9, moved' } }),
        secret: () => change({ values: { client_secret: (client_secret = 'secret-2') } }),
        deletion: () => change({ deleted: true }),
      },
      stop: async () => {
        await script.stop();
        await redis.stop();
      },
    };
  },
};
