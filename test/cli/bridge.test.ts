import { cliScene } from './harness';
import type { SceneOptions } from './harness';

const REALM = 'https://login.test/realms/shop';
const CLIENT = ['--client', 'bridge', '--secret-file', '-'];
const REDIS = ['--generations', 'redis://127.0.0.1:1'];

async function bridge(options: SceneOptions, ...flags: string[]): ReturnType<ReturnType<typeof cliScene>['run']> {
  const scene = cliScene({ stdin: 'secret\n', ...options });
  const outcome = await scene.run('bridge', 'keycloak', ...flags);
  return outcome;
}

it.each([
  ['no client', ['--url', REALM, ...REDIS], 'give --client and --secret-file'],
  ['no realm', [...CLIENT, ...REDIS], 'the URL of a realm, such as https://login.example.com/realms/shop'],
  ['a URL without TLS', ['--url', 'http://login.test/realms/shop', ...CLIENT, ...REDIS], 'must be an https: URL'],
  ['no source', ['--url', REALM, ...CLIENT], 'TILLGATE_GENERATIONS'],
  [
    'a source that can only be read',
    ['--url', REALM, ...CLIENT, '--generations', 'https://login.test/generations'],
    'the source can only be read: give redis(s):// or postgres://',
  ],
])('bridge keycloak with %s is a usage error that says what to give', async (_what, flags, message) => {
  const { exitCode, stdout, stderr } = await bridge({ env: { TILLGATE_AUTH_URL: 'https://login.test' } }, ...flags);
  expect([exitCode, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
});
