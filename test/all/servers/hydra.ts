import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { startChild } from './child';
import { startDatabase } from './database';
import { folderOf } from './packages';
import { postJson, sendJson, tokenFrom } from './requests';
import { AUDIENCE, CLIENT, SCOPE } from './run-server';
import type { AuthorizationServer, RunningServer } from './run-server';

const SECTION = 'Ory Hydra';
const shared = { section: SECTION, version: '2.3.0', learns: 'a trigger, by `iat`' };

export const HYDRA: readonly AuthorizationServer[] = [
  { ...shared, name: 'Ory Hydra, JWT', start: () => startHydra('jwt') },
  { ...shared, name: 'Ory Hydra, opaque', start: () => startHydra('opaque') },
];

async function startHydra(strategy: 'jwt' | 'opaque'): Promise<RunningServer> {
  const folder = await folderOf('hydra', []);
  const program = join(folder, 'hydra');
  if (!existsSync(program)) execFileSync('sh', [join(__dirname, 'build-hydra.sh'), folder], { stdio: 'ignore' });
  const [database, publicPort, adminPort] = await Promise.all([startDatabase(), freePort(), freePort()]);
  const [issuer, admin] = [`http://127.0.0.1:${publicPort}`, `http://127.0.0.1:${adminPort}/admin`];
  const config = join(folder, 'hydra.yml');
  await writeFile(
    config,
    [
      `urls: { self: { issuer: '${issuer}' } }`,
      `strategies: { access_token: ${strategy} }`,
      'secrets: { system: [only-for-tests-and-long-enough] }',
      `serve: { public: { host: 127.0.0.1, port: ${publicPort} }, admin: { host: 127.0.0.1, port: ${adminPort} } }`,
    ].join('\n'),
  );
  const env = { DSN: `${database.url}?sslmode=disable` };
  execFileSync(program, ['migrate', 'sql', '-e', '--yes'], { env: { ...process.env, ...env }, stdio: 'ignore' });
  const command = [program, 'serve', 'all', '--dev', '-c', config] as const;
  const server = await startChild(command, `${issuer}/.well-known/openid-configuration`, { env });
  await database.follow(SECTION);
  let client_secret = 'secret-one';
  const client = {
    ...{ client_id: CLIENT, client_secret, grant_types: ['client_credentials'] },
    ...{ scope: SCOPE, audience: [AUDIENCE], token_endpoint_auth_method: 'client_secret_basic' },
  };
  await postJson(`${admin}/clients`, client);
  const change = (values: object): Promise<unknown> =>
    sendJson('PUT', `${admin}/clients/${CLIENT}`, { ...client, client_secret, ...values });
  return {
    issuer,
    options: {
      generationSource: database.generationSource,
      ...(strategy === 'opaque' && {
        opaque: { url: `${admin}/oauth2/introspect`, clientId: 'orders-api', clientSecret: 'unused' },
      }),
    },
    token: () => tokenFrom(`${issuer}/oauth2/token`, CLIENT, client_secret, { scope: SCOPE, audience: AUDIENCE }),
    changes: {
      description: () => change({ client_name: 'Till 9, moved' }),
      secret: () => change({ client_secret: (client_secret = 'secret-two') }),
      deletion: () => sendJson('DELETE', `${admin}/clients/${CLIENT}`),
    },
    stop: async () => {
      await server.stop();
      await database.stop();
    },
  };
}
