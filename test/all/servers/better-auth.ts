import { join } from 'node:path';
import { startScript } from '../setup/script';
import { freePort } from '../support/free-port';
import { startDatabase } from './database';
import { npmPackages } from './packages';
import { tokenFrom } from './requests';
import { AUDIENCE, SCOPE } from './run-server';
import type { AuthorizationServer } from './run-server';

const version = '1.7.5';
const PACKAGES = ['better-auth', '@better-auth/core', '@better-auth/oauth-provider'].map(
  (name) => `${name}@${version}`,
);

interface Credential {
  readonly client_id: string;
  readonly client_secret: string;
}

export const BETTER_AUTH: AuthorizationServer = {
  name: 'Better Auth',
  version,
  learns: 'a trigger, by `iat`',
  async start() {
    const files = [join(__dirname, 'better-auth-process.mjs'), join(__dirname, '../setup/reply-to-parent.mjs')];
    const folder = await npmPackages('better-auth', [...PACKAGES, 'pg@8'], files);
    const [database, port] = await Promise.all([startDatabase(), freePort()]);
    const parameters = { database: database.url, audience: AUDIENCE, scope: SCOPE, port };
    const script = await startScript<{ issuer: string }>(join(folder, 'better-auth-process.mjs'), parameters);
    await database.follow('Better Auth');
    const { issuer } = script.ready;
    let credential = await script.ask<Credential>({ change: 'create' });
    const change = <Reply>(name: string): Promise<Reply> => script.ask({ change: name, id: credential.client_id });
    const token = (parameters: object): Promise<string> =>
      tokenFrom(`${issuer}/oauth2/token`, credential.client_id, credential.client_secret, {
        scope: SCOPE,
        ...parameters,
      });
    return {
      issuer,
      options: { generationSource: database.generationSource },
      token: () => token({ resource: AUDIENCE }),
      changes: {
        description: () => change('rename'),
        secret: async () => (credential = await change<Credential>('rotate')),
        deletion: () => change('delete'),
      },
      stop: async () => {
        await script.stop();
        await database.stop();
      },
    };
  },
};
