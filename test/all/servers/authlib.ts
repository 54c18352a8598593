import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { startRedis } from '../support/redis-server';
import { startChild } from './child';
import { pythonPackages } from './packages';
import { CLIENT, SCOPE } from './run-server';
import type { AuthorizationServer } from './run-server';
import { postJson, tokenFrom } from './requests';

const version = '1.9.6';

export const AUTHLIB: AuthorizationServer = {
  name: 'Authlib',
  version,
  learns: 'a stamped number, published to Redis',
  async start() {
    const python = await pythonPackages('authlib', [
      `Authlib==${version}`,
      'Flask==3.1.3',
      'joserfc==1.8.0',
      'redis==8.1.0',
    ]);
    const [redis, port] = await Promise.all([startRedis(), freePort()]);
    const issuer = `http://127.0.0.1:${port}`;
    const script = join(__dirname, 'authlib_server.py');
    const server = await startChild([python, script, String(port), String(redis.port)], `${issuer}/jwks`);
    let secret = 'secret-1';
    const change = (values: object): Promise<unknown> => postJson(`${issuer}/clients/${CLIENT}`, values);
    await change({ secret });
    const token = (path = ''): Promise<string> => tokenFrom(`${issuer}${path}/token`, CLIENT, secret, { scope: SCOPE });
    return {
      issuer,
      options: { generationSource: `${redis.url}?mark=off` },
      token,
      asMade: async () => ({ issuer, token: await token('/as-made') }),
      changes: {
        description: () => change({ description: 'Till 9, moved' }),
        secret: () => change({ secret: (secret = 'secret-2') }),
        deletion: () => change({ deleted: true }),
      },
      stop: async () => {
        await server.stop();
        await redis.stop();
      },
    };
  },
};
