import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { startChild } from './child';
import { mavenClasses } from './packages';
import { configOfSection } from './page';
import { tokenFrom } from './requests';
import { CLIENT, SCOPE } from './run-server';
import type { AuthorizationServer } from './run-server';

const version = '3.0.1';

export const MOCK_OAUTH2_SERVER: AuthorizationServer = {
  name: 'mock-oauth2-server',
  version,
  learns: 'nothing',
  async start() {
    const { classes, folder } = await mavenClasses(`no.nav.security:mock-oauth2-server:${version}`);
    const port = await freePort();
    const origin = `http://localhost:${port}`;
    const config = join(folder, 'config.json');
    await writeFile(config, configOfSection('mock-oauth2-server'));
    const main = 'no.nav.security.mock.oauth2.StandaloneMockOAuth2ServerKt';
    const server = await startChild(['java', '-Xmx256m', '-cp', classes, main], `${origin}/isalive`, {
      env: { SERVER_PORT: String(port), JSON_CONFIG_PATH: config },
    });
    const token = (issuer: string): Promise<string> => tokenFrom(`${issuer}/token`, CLIENT, 'any', { scope: SCOPE });
    const [issuer, other] = [`${origin}/shop`, `${origin}/other`];
    return {
      issuer,
      token: () => token(issuer),
      asMade: async () => ({ issuer: other, token: await token(other) }),
      changes: {},
      stop: () => server.stop(),
    };
  },
};
