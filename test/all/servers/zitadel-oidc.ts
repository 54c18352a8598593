import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { startChild } from './child';
import { folderOf } from './packages';
import { tokenFrom } from './requests';
import { SCOPE } from './run-server';
import type { AuthorizationServer } from './run-server';

/** Its clients are in its code, and so do not change. */
export const ZITADEL_OIDC: AuthorizationServer = {
  name: 'zitadel/oidc, its example',
  section: 'Small servers',
  version: '3.52.0',
  learns: 'nothing',
  async start() {
    const folder = await folderOf('zitadel-oidc', []);
    const program = join(folder, 'server');
    const script = join(__dirname, 'build-zitadel-oidc.sh');
    if (!existsSync(program)) execFileSync('sh', [script, folder], { stdio: 'ignore' });
    const port = await freePort();
    const issuer = `http://localhost:${port}/`;
    const metadata = `${issuer}.well-known/openid-configuration`;
    const server = await startChild([program], metadata, { env: { PORT: String(port) } });
    return {
      issuer,
      options: { opaque: { url: `${issuer}oauth/introspect`, clientId: 'api', clientSecret: 'secret' } },
      token: () => tokenFrom(`${issuer}oauth/token`, 'sid1', 'verysecret', { scope: SCOPE }),
      changes: {},
      stop: () => server.stop(),
    };
  },
};
