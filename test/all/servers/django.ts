import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { startChild } from './child';
import { startDatabase } from './database';
import { pythonPackages } from './packages';
import { postJson, tokenFrom } from './requests';
import { AUDIENCE, CLIENT, SCOPE } from './run-server';
import type { AuthorizationServer } from './run-server';

const version = '3.4.1';

export const DJANGO: AuthorizationServer = {
  name: 'django-oauth-toolkit',
  version,
  learns: 'a trigger, by `iat`',
  async start() {
    const packages = [`django-oauth-toolkit==${version}`, 'Django==5.2.19', 'psycopg[binary]==3.3.9'];
    const python = await pythonPackages('django-oauth-toolkit', packages);
    const [database, port] = await Promise.all([startDatabase(), freePort()]);
    const origin = `http://127.0.0.1:${port}`;
    const script = join(__dirname, 'django_server.py');
    const metadata = `${origin}/o/.well-known/oauth-authorization-server`;
    const args = [String(port), String(database.port), 'postgres'];
    const server = await startChild([python, script, ...args], metadata);
    await database.follow('django-oauth-toolkit');
    const client = (id: string, values: object): Promise<unknown> => postJson(`${origin}/clients/${id}`, values);
    let client_secret = 'secret-1';
    await client(CLIENT, { client_secret });
    await client('orders-api', { client_secret });
    return {
      issuer: origin,
      options: {
        opaque: { url: `${origin}/o/introspect-with-iat/`, clientId: 'orders-api', clientSecret: client_secret },
        generationSource: database.generationSource,
      },
      token: () => tokenFrom(`${origin}/o/token/`, CLIENT, client_secret, { scope: SCOPE, resource: AUDIENCE }),
      changes: {
        description: () => client(CLIENT, { name: 'Till 9, moved' }),
        secret: () => client(CLIENT, { client_secret: (client_secret = 'secret-2') }),
        deletion: () => client(CLIENT, { deleted: true }),
      },
      stop: async () => {
        await server.stop();
        await database.stop();
      },
    };
  },
};
