import { join } from 'node:path';
import { startScript } from '../setup/script';
import { npmPackages } from './packages';
import { AUDIENCE, CLIENT, SCOPE } from './run-server';
import type { AuthorizationServer } from './run-server';
import { tokenFrom } from './requests';

const version = '9.3.0';

export const OAUTH2_MOCK_SERVER: AuthorizationServer = {
  name: 'oauth2-mock-server',
  version,
  learns: 'first use of a new token',
  async start() {
    const files = [join(__dirname, 'oauth2-mock-server-process.mjs'), join(__dirname, '../setup/reply-to-parent.mjs')];
    const folder = await npmPackages('oauth2-mock-server', [`oauth2-mock-server@${version}`], files);
    const script = await startScript<{ issuer: string }>(join(folder, 'oauth2-mock-server-process.mjs'));
    const { issuer } = script.ready;
    const token = (): Promise<string> => tokenFrom(`${issuer}/token`, CLIENT, 'any', { scope: SCOPE, aud: AUDIENCE });
    const stamp = (generation: number): Promise<unknown> => script.ask({ generation });
    const asMade = { issuer, token: await token() };
    await stamp(Date.now());
    return {
      issuer,
      token,
      asMade: () => Promise.resolve(asMade),
      changes: { description: () => stamp(Date.now()) },
      stop: () => script.stop(),
    };
  },
};
