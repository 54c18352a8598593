import { cliScene, json } from './harness';
import type { CliScene, SceneOptions } from './harness';

const CHANGES = [
  { client_id: 'till-2', generation: 1_790_000_000_000 },
  { client_id: 'kiosk', generation: 1_790_000_000_004 },
  { client_id: 'kiosk', generation: 1_790_000_000_005 },
];
function scene(env: Record<string, string> = {}): CliScene {
  const made = cliScene({
    env,
    respond({ url }) {
      const { pathname, searchParams } = new URL(url);
      if (pathname !== '/generations') return undefined;
      const at = Number(searchParams.get('after') ?? 0);
      return json(200, { position: String(at + 2), end: at > 0, changes: CHANGES.slice(at, at + 2) });
    },
  });
  return made;
}

describe('generations list', () => {
  it('shows the floors of the source as a table', async () => {
    const { exitCode, stdout } = await scene().run('generations', 'list', '--generations', 'http://127.0.0.1:4000');
    expect(exitCode).toBe(0);
    expect(stdout.split('\n')).toEqual(['CLIENT  GENERATION', 'kiosk   1790000000005', 'till-2  1790000000000', '']);
  });

  it('prints one JSON document, of the whole log', async () => {
    const through = scene({ TILLGATE_GENERATIONS: 'http://127.0.0.1:4000/generations' });
    const { stdout } = await through.run('generations', 'list', '--json');
    expect(JSON.parse(stdout)).toEqual({ floors: [CHANGES[2], CHANGES[0]] });
    expect(through.sent.map(({ url }) => url)).toEqual([
      'http://127.0.0.1:4000/generations',
      'http://127.0.0.1:4000/generations?after=2',
    ]);
  });

  it('reads the embedded token server where no source is named', async () => {
    const through = scene();
    expect((await through.run('generations', 'list')).exitCode).toBe(0);
    expect(new Set(through.sent.map(({ url }) => new URL(url).host))).toEqual(new Set(['127.0.0.1:4000']));
  });

  it('sends the admin token to the token server of the settings, and to no other server', async () => {
    const through = scene({ TILLGATE_ADMIN_TOKEN: 'geheim-geheim-geheim' });
    await through.run('generations', 'list');
    await through.run('generations', 'list', '--generations', 'http://127.0.0.1:4999');
    const shown = through.sent.map(({ url, headers }) => [new URL(url).port, headers.get('authorization')]);
    expect(shown).toEqual([
      ['4000', 'Bearer geheim-geheim-geheim'],
      ['4000', 'Bearer geheim-geheim-geheim'],
      ['4999', null],
      ['4999', null],
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
  ])('keeps the admin token from TILLGATE_GENERATIONS at %s', async (_where, env) => {
    const through = scene({
      TILLGATE_ISSUER: 'https://login.test',
      TILLGATE_ADMIN_TOKEN: 'geheim-geheim-geheim',
      ...env,
    });
    await through.run('generations', 'list');
    const sent = [new URL(env.TILLGATE_GENERATIONS).origin, null];
    expect(through.sent.map(({ url, headers }) => [new URL(url).origin, headers.get('authorization')])).toEqual([
      sent,
      sent,
    ]);
  });

  it('sends the admin token to another path of the token server', async () => {
    const through = scene({
      TILLGATE_AUTH_URL: 'https://login.test/realm',
      TILLGATE_GENERATIONS: 'https://login.test:443/generations',
      TILLGATE_ADMIN_TOKEN: 'geheim-geheim-geheim',
    });
    await through.run('generations', 'list');
    expect(through.sent.map(({ headers }) => headers.get('authorization'))).toEqual([
      'Bearer geheim-geheim-geheim',
      'Bearer geheim-geheim-geheim',
    ]);
  });

  it('refuses plain http: to another host, unless TILLGATE_ALLOW_HTTP allows it', async () => {
    const argv = ['generations', 'list', '--generations', 'http://login.test/generations'];
    const through = scene();
    expect(await through.run(...argv)).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: 'tillgate: --generations: http: is for loopback only; use https:, or set TILLGATE_ALLOW_HTTP=on\n',
    });
    expect(through.sent).toEqual([]);
    expect((await scene({ TILLGATE_ALLOW_HTTP: 'on' }).run(...argv)).exitCode).toBe(0);
  });

  it('exits with 2 without a source', async () => {
    const outcome = await scene({ TILLGATE_AUTH_URL: 'https://login.test' }).run('generations', 'list');
    expect(outcome).toEqual({
      exitCode: 2,
      stdout: '',
      stderr:
        'tillgate: give --generations redis://..., postgres://... or http(s)://..., or set TILLGATE_GENERATIONS\n',
    });
  });

  it('exits with 1 when the source cannot be read, and shows no password', async () => {
    const through = cliScene();
    const outcome = await through.run('generations', 'list', '--generations', 'http://till:hunter2@127.0.0.1:4000');
    expect(outcome.exitCode).toBe(1);
    expect(outcome.stderr).toContain('the generation source did not respond');
    expect(outcome.stdout + outcome.stderr).not.toContain('hunter2');
  });
});

describe('generations publish', () => {
  it.each([
    ['an http source', ['--generations', 'http://127.0.0.1:4000'], 'this source can only be read'],
    ['an unknown scheme', ['--generations', 'mqtt://till:hunter2@127.0.0.1'], 'mqtt'],
    ['a generation that is not a number', ['--generation', '5x'], '--generation: got "5x", expected a whole number'],
    ['a generation in microseconds', ['--generation', '1790000000000123'], 'a time in ms that has not come yet'],
    [
      'a generation of the day after tomorrow',
      ['--generation', String(Date.now() + 2 * 86_400_000)],
      'a time in ms that has not come yet',
    ],
    ['a generation beyond 2^53', ['--generation', '9007199254740993'], 'expected a whole number'],
  ])('exits with 2 for %s', async (_what, argv, message) => {
    const through = scene();
    const outcome = await through.run('generations', 'publish', 'till-2', ...argv);
    expect(outcome.exitCode).toBe(2);
    expect(outcome.stderr).toContain(message);
    expect(outcome.stdout + outcome.stderr).not.toContain('hunter2');
    expect(through.sent).toEqual([]);
  });

  it('is what revoke does when a source is named', async () => {
    const outcome = await scene().run('revoke', 'till-2', '--generations', 'http://127.0.0.1:4000');
    expect(outcome.exitCode).toBe(2);
    expect(outcome.stderr).toContain('this source can only be read');
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
