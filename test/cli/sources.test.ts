import { authorizedGenerations } from '../../src/cli/sources';
import { apiSettings } from '../../src/cli/settings';
import { readSettings } from '../../src/gate/env';
import { cliScene, json } from './harness';
import type { SceneOptions } from './harness';

const ADMIN_TOKEN = 'geheim-geheim-geheim';

describe('the admin token', () => {
  /** The authorization headers that a read of the source of these variables sends; `undefined`: the token is not for it. */
  async function sentTo(env: Record<string, string>): Promise<(string | null)[] | undefined> {
    const sent: (string | null)[] = [];
    const source = authorizedGenerations(apiSettings(readSettings({ TILLGATE_ADMIN_TOKEN: ADMIN_TOKEN, ...env })), {
      fetch: (_url, init) => {
        sent.push(new Headers(init?.headers).get('authorization'));
        return Promise.resolve(json(200, { position: '1', end: true, changes: [] }));
      },
    });
    if (!source) return undefined;
    await source.reader().next(0);
    await source.close?.();
    return sent;
  }

  it('is sent to the log of the embedded token server', async () => {
    expect(await sentTo({})).toEqual([`Bearer ${ADMIN_TOKEN}`]);
  });

  it('is sent to another path of the token server', async () => {
    const server = { TILLGATE_AUTH_URL: 'https://login.test/realm' };
    expect(await sentTo({ ...server, TILLGATE_GENERATIONS: 'https://login.test:443/generations' })).toEqual([
      `Bearer ${ADMIN_TOKEN}`,
    ]);
  });

  it.each([
    ['another host', { TILLGATE_GENERATIONS: 'https://log.test/generations' }],
    ['another port', { TILLGATE_GENERATIONS: 'https://login.test:444/generations' }],
    ['another scheme', { TILLGATE_GENERATIONS: 'http://login.test:443/generations', TILLGATE_ALLOW_HTTP: 'on' }],
    ['a host that begins alike', { TILLGATE_GENERATIONS: 'https://login.test.evil.test/generations' }],
    [
      'the token server, if TILLGATE_AUTH_URL is elsewhere than the issuer',
      { TILLGATE_GENERATIONS: 'https://login.test/generations', TILLGATE_AUTH_URL: 'https://other.test' },
    ],
  ])('is kept from TILLGATE_GENERATIONS at %s', async (_where, env) => {
    expect(await sentTo({ TILLGATE_ISSUER: 'https://login.test', ...env })).toBeUndefined();
  });
});

describe('revoke --generations', () => {
  it.each([
    ['an http source', 'http://127.0.0.1:4000', 'this source can only be read'],
    ['an unknown scheme', 'mqtt://till:hunter2@127.0.0.1', 'mqtt'],
    ['plain http: to another host', 'http://login.test/generations', 'TILLGATE_GENERATIONS: '],
  ])('exits with 2 for %s', async (_what, url, message) => {
    const through = cliScene();
    const outcome = await through.run('revoke', 'till-2', '--generations', url);
    expect(outcome.exitCode).toBe(2);
    expect(outcome.stderr).toContain(message);
    expect(outcome.stdout + outcome.stderr).not.toContain('hunter2');
    expect(through.sent).toEqual([]);
  });

  it.each([
    ['another claim', ['--generations', 'redis://127.0.0.1:1', '--compared-by', 'client_generation']],
    ['the token server', ['--compared-by', 'iat']],
  ])('exits with 2 for --compared-by with %s', async (_what, flags) => {
    const through = cliScene({ env: { TILLGATE_GENERATION_CLAIM: 'iat' } });
    const { exitCode, stdout, stderr } = await through.run('revoke', 'till-2', ...flags);
    expect([exitCode, stdout, through.sent]).toEqual([2, '', []]);
    expect(stderr).toContain('--compared-by goes with --generations, and is iat');
  });
});

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
