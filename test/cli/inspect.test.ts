import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { devDependencies as ranges, version } from '../../package.json';
import { shellWord } from '../../src/cli/output';
import { dependencies as ofScaffold } from '../../src/app/package.json';
import { AUTH_URL, authorizationServer, cliScene, failure, issuer, json, keys, success } from './harness';
import type { CliScene, SceneOptions } from './harness';

function scene(options: SceneOptions = {}): CliScene {
  const env = { TILLGATE_AUTH_URL: AUTH_URL, TILLGATE_AUDIENCE: issuer.audience };
  return cliScene({ respond: (sent) => authorizationServer(sent), ...options, env: { ...env, ...options.env } });
}

describe('check', () => {
  it('says what the claim iat, which it advises itself, means without a source', async () => {
    const { exitCode, stdout } = await scene({ env: { TILLGATE_GENERATION_CLAIM: 'iat' } }).run('check', '--json');
    expect(exitCode).toBe(0);
    const { findings } = JSON.parse(stdout) as { findings: readonly { check: string; ok: boolean; detail: string }[] };
    expect(findings.find(({ check }) => check === 'generations')).toMatchObject({
      ok: true,
      detail: 'no source (TILLGATE_GENERATIONS): tokens are accepted until they expire',
    });
  });

  it('finds everything in order, and names nothing that it has not checked', async () => {
    const lines = [
      'ok      configuration: every TILLGATE_* variable is in order',
      `ok      issuer: metadata at ${AUTH_URL} names ${AUTH_URL} and the key set ${AUTH_URL}/jwks`,
      'ok      keys: 1 can verify access tokens',
      'ok      generations: no source (TILLGATE_GENERATIONS): a change of a credential becomes known with a token that has a ' +
        'higher generation; without generation tokens are accepted until they expire',
      '',
    ];
    expect(await scene().run('check')).toEqual(success(lines.join('\n')));
  });

  it('recognizes an authorization server by the key set that its metadata names', async () => {
    const jwks_uri = `${AUTH_URL}/.well-known/openid-configuration/jwks`;
    const { exitCode, stdout } = await scene({
      respond: ({ url }) => json(200, url === jwks_uri ? keys : { issuer: AUTH_URL, jwks_uri }),
    }).run('check');
    expect(exitCode).toBe(0);
    expect(stdout).toContain(
      `ok      preset: rfc9068, and ${AUTH_URL} looks like identityserver: if its tokens are refused, set TILLGATE_PRESET=identityserver\n`,
    );
  });

  it('says what to do when the metadata names a key set on a host that cannot be reached', async () => {
    const env = { TILLGATE_AUTH_URL: 'https://keycloak:8443', TILLGATE_ISSUER: AUTH_URL };
    const metadata = json(200, { issuer: AUTH_URL, jwks_uri: `${AUTH_URL}/jwks` });
    const { exitCode, stdout } = await scene({
      env,
      respond: ({ url }) => (new URL(url).host === 'keycloak:8443' ? metadata.clone() : undefined),
    }).run('check');
    expect(exitCode).toBe(1);
    expect(stdout).toContain(
      '        the metadata names another host than TILLGATE_AUTH_URL, login.test: if it cannot be reached from here, set ' +
        'TILLGATE_JWKS_URI to the address that can: docs/issuers.md, "Two host names"\n',
    );
  });

  it('says what to do when the key set is empty', async () => {
    const { exitCode, stdout } = await scene({
      respond: (request) => (request.url.endsWith('/jwks') ? json(200, { keys: [] }) : authorizationServer(request)),
    }).run('check', '--json');
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      findings: [
        {},
        { check: 'issuer', ok: true },
        { check: 'keys', ok: false, fix: expect.any(String) },
        { check: 'generations', ok: true },
      ],
    });
  });

  it('says what to do when the generation source refuses', async () => {
    const { exitCode, stdout } = await scene({
      env: { TILLGATE_GENERATIONS: 'https://id:geheim@login.test/generations' },
    }).run('check');
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^failed {2}generations: .*404/m);
    expect(stdout).not.toContain('geheim');
  });

  it('says what the keycloak.json of an app means in variables, where they are missing', async () => {
    const { dataDir, run } = cliScene();
    const server = { realm: 'shop', 'auth-server-url': 'https://sso.example.com/' };
    const file = { ...server, resource: 'orders-api', 'bearer-only': true };
    writeFileSync(join(dataDir, 'keycloak.json'), JSON.stringify(file));
    expect(await run('check')).toMatchObject({
      exitCode: 78,
      stdout: expect.stringContaining(
        'ok      keycloak.json: TILLGATE_PRESET=keycloak TILLGATE_ISSUER=https://sso.example.com/realms/shop TILLGATE_AUDIENCE=orders-api;',
      ),
    });
  });

  it.each([
    [
      'asks no token server where the app would have no issuer',
      [],
      78,
      /^failed {2}configuration: TILLGATE_AUTH_URL: not set/,
      [],
    ],
    ['examines that of tillgate dev on request', ['--embedded'], 1, /^failed {2}issuer: /m, ['http://127.0.0.1:4000']],
  ])('%s', async (_what, options, exitCode, line, asked) => {
    const alone = cliScene();
    const outcome = await alone.run('check', ...options);
    expect(outcome.exitCode).toBe(exitCode);
    expect(outcome.stdout).toMatch(line);
    expect(outcome.stdout.includes('check --embedded examines the token server of tillgate dev')).toBe(exitCode === 78);
    expect([...new Set(alone.sent.map(({ url }) => new URL(url).origin))]).toEqual(asked);
  });

  it('says which variables the app has only where something reads .env', async () => {
    const alone = scene({ env: { TILLGATE_PRESET: 'rfc9068' } });
    writeFileSync(join(alone.dataDir, '.env'), `TILLGATE_PRESET=jwt\nTILLGATE_HOST=127.0.0.1\nOTHER=1\n`);
    const { stdout } = await alone.run('check');
    const [, second] = stdout.split('\n');
    expect(second).toBe(
      '        TILLGATE_HOST: set in .env alone, which plain node does not read: start the API with node --env-file=.env',
    );
  });

  it('reports wrong variables one by one and ends with 78', async () => {
    const { exitCode, stdout } = await scene({ env: { TILLGATE_PORT: 'x', TILLGATE_PRESET: 'y' } }).run('check');
    expect(exitCode).toBe(78);
    expect(stdout.match(/^failed {2}configuration: TILLGATE_\w+/gm)).toEqual([
      'failed  configuration: TILLGATE_PORT',
      'failed  configuration: TILLGATE_PRESET',
    ]);
  });
});

describe('explain', () => {
  const token = issuer.token();
  it.each([
    ['the whole header', `Authorization: Bearer ${token}`],
    ['line breaks', `${token.slice(0, 40)}\n${token.slice(40, 90)}\r\n  ${token.slice(90)}\n`],
    ['a token response', JSON.stringify({ access_token: token, token_type: 'Bearer' }, undefined, 2)],
    ['the JSON of the token alone', JSON.stringify(token)],
  ])('finds the token in what was pasted: %s', async (_what, pasted) => {
    expect((await scene().run('explain', pasted)).exitCode).toBe(0);
    expect((await scene({ stdin: pasted }).run('explain', '-')).exitCode).toBe(0);
  });

  it.each([
    ['a token that is cut with dots', `${token.slice(0, 20)}...`, 'the token is cut where it has "..."'],
    ['a token that is cut with an ellipsis', `${token.slice(0, 20)}…${token.slice(-9)}`, 'the token is cut'],
    ['a response without a token', '{"error":"invalid_client"}', 'this JSON has no access_token'],
  ])('exits with 2 for %s', async (_what, pasted, message) => {
    const { exitCode, stdout, stderr } = await scene().run('explain', pasted);
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  it('passes every check of a good token', async () => {
    const token = issuer.token({ clientId: 'pos-17', scope: 'orders:read' });

    const { exitCode, stdout } = await scene().run('explain', token, '--scope', 'orders:read');

    expect(exitCode).toBe(0);
    const checks = ['structure', 'header', 'key', 'signature', 'claims', 'generation', 'scope'];
    expect(stdout.split('\n')).toEqual([
      ...checks.map((check) => `${check.padEnd(12)}passed`),
      expect.stringMatching(
        /^claims: {"iss":"https:\/\/login\.test",.*"client_id":"pos-17","scope":"orders:read",.*}$/,
      ),
      'accepted: client pos-17, scopes orders:read',
      '',
    ]);
  });

  it('names the first check that fails', async () => {
    const { exitCode, stdout } = await scene({ stdin: `${issuer.token({ expired: true })}\n` }).run('explain', '-');
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^claims {6}failed {7}expired: .*$/m);
    expect(stdout).toMatch(/^generation {2}not reached$/m);
    expect(stdout).toMatch(/^refused with 401$/m);
  });

  it('says 503 and not 401 when the keys are unavailable', async () => {
    const { exitCode, stdout } = await scene({ respond: () => undefined }).run('explain', issuer.token());
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^key +failed +keys_unavailable: /m);
    expect(stdout).toMatch(/^refused with 503$/m);
  });
});

describe('init', () => {
  it('writes the scaffold as a project and prints the next steps', async () => {
    const { dataDir, run } = scene();
    const directory = join(dataDir, 'My Shop');

    const { exitCode, stdout } = await run('init', directory);

    expect(exitCode).toBe(0);
    expect(stdout).toContain(`\n  cd '${directory}'\n  npm install\n  npm test\n`);
    const entries = [
      '.env.example',
      '.gitignore',
      'README.md',
      'openapi.yaml',
      'package.json',
      'scripts',
      'src',
      'test',
    ];
    expect(readdirSync(directory).sort()).toEqual([...entries, 'tsconfig.json']);
    const sources = readdirSync(join(__dirname, '../../src/app'), { recursive: true, encoding: 'utf8' });
    const written = readdirSync(join(directory, 'src/app'), { recursive: true, encoding: 'utf8' });
    expect(written.sort()).toEqual(sources.filter((name) => !/^(dist|node_modules)|\.json$/.test(name)).sort());
    const { name, scripts, dependencies, devDependencies } = JSON.parse(
      readFileSync(join(directory, 'package.json'), 'utf8'),
    ) as Record<string, Record<string, string>>;
    expect(name).toBe('my-shop');
    expect(scripts).toMatchObject({ 'token-server': 'tillgate dev --token-server' });
    const current = `^${version}`;
    expect(dependencies).toEqual({ ...ofScaffold, '@tillgate/stores': current, tillgate: current });
    const ours = { '@tillgate/cli': current, '@tillgate/testing': current };
    expect(devDependencies).toMatchObject({ ...ours, supertest: ranges.supertest });
  });

  it.each([
    ['shop', 'shop', 'shop'],
    ['my shop', `'my shop'`, '"my shop"'],
    [`owner's $HOME`, `'owner'"'"'s $HOME'`, `"owner's $HOME"`],
    ['C:\\shops\\till', `'C:\\shops\\till'`, 'C:\\shops\\till'],
  ])('prints a folder so that it can be pasted: %s', (folder, posix, windows) => {
    expect([shellWord(folder, 'linux'), shellWord(folder, 'win32')]).toEqual([posix, windows]);
  });

  it('keeps secrets out of git: of the token server, of the command line, of .env', async () => {
    const { dataDir, run } = scene();
    const directory = join(dataDir, 'shop');
    await run('init', directory);
    mkdirSync(join(directory, '.tillgate'));
    for (const name of ['.tillgate/state.json', '.tillgate/credentials.json', '.env', 'credentials.json']) {
      writeFileSync(join(directory, name), 'secret');
    }
    const git = (...args: string[]) => execFileSync('git', args, { cwd: directory, encoding: 'utf8' });
    git('init', '--quiet');
    git('add', '-A');
    const added = git('diff', '--cached', '--name-only').trim().split('\n');
    const tests = ['app-scene.ts', 'app.test.ts', 'contract/contract.test.ts', 'contract/first-ids.ts'];
    expect(added.filter((file) => !file.startsWith('src/'))).toEqual([
      ...['.env.example', '.gitignore', 'README.md', 'openapi.yaml', 'package.json'],
      'scripts/no-telemetry/package.json',
      ...[...tests, 'contract/scaffold-cases.ts', 'server.test.ts'].map((name) => `test/${name}`),
      'tsconfig.json',
    ]);
  });

  it('refuses a directory that is not empty, and does not change it', async () => {
    const { dataDir, run } = scene();
    const directory = join(dataDir, 'shop');
    mkdirSync(directory);
    writeFileSync(join(directory, 'notes.txt'), 'mine');
    expect(await run('init', directory)).toEqual(
      failure(2, `${directory} is not empty (1 entries); name a new or an empty directory`),
    );
    expect(readdirSync(directory)).toEqual(['notes.txt']);
  });
});
