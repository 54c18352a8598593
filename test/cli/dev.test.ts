import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { listen } from '../support/listen';
import { expectPrivate } from '../support/private-file';
import { newDataDir } from './data-dir';
import { cliScene, failure, success } from './harness';
import { IDLE, whileDevRuns } from './while-dev-runs';
import { startTokenServer } from '../../src/cli/token-server';
import { readSettings } from '../../src/gate/env';
import { recordingLogger } from '../support/log';

const never = (): Promise<void> => new Promise(() => {});
const withDocument = ['--openapi', join(__dirname, '../../openapi.yaml')];
const API = {
  scopes: undefined,
  routes: [],
  docsUrl: undefined,
  command: '',
  call: () => Promise.reject(new Error('not called')),
};
const ANY_PORTS = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'silent' };

describe('dev', () => {
  const dataDir = newDataDir();

  it('registers two demo clients at the first start, and keeps their secrets for its owner only', async () => {
    const { report } = await whileDevRuns(IDLE, undefined, {}, dataDir);
    expect(report.clients.map(({ client_id, scope }) => [client_id, scope])).toEqual([
      [
        'pos-terminal',
        'orders:read orders:write items:read items:write menus:read menus:write payments:read payments:write',
      ],
      ['kiosk', 'orders:read items:read menus:read payments:read'],
    ]);
    const file = join(dataDir, 'credentials.json');
    expectPrivate(file);
    expect(readFileSync(file, 'utf8')).toContain(report.clients[0]?.client_secret);
  });

  it('registers no client at the second start and shows no secret', async () => {
    const { stdout } = await cliScene({ dataDir, env: ANY_PORTS, fetch }).run('dev', ...withDocument, ...IDLE);
    const kept = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
      embedded: Record<string, { client_secret: string }>;
    };
    expect(stdout).toMatch(/The token server is ready in \d+ ms/);
    expect(Object.keys(kept.embedded)).toEqual(['pos-terminal', 'kiosk']);
    for (const { client_secret } of Object.values(kept.embedded)) expect(stdout).not.toContain(client_secret);
    expect(stdout).toContain('TOKEN=$(tillgate token pos-terminal); curl -i http://127.0.0.1:');
  });

  it.each([
    ['one audience', 'https://shop.test'],
    ['the first of several audiences', '["https://shop.test","https://till.test"]'],
  ])(
    'runs a command with the variables of an app that trusts the token server, for %s, and ends with its exit code',
    async (_what, audience) => {
      const dataDir = newDataDir();
      const file = join(dataDir, 'variables.json');
      const script = `require('fs').writeFileSync(${JSON.stringify(file)}, JSON.stringify(process.env)); process.exit(7)`;
      const env = { ...ANY_PORTS, TILLGATE_AUDIENCE: audience };
      const { exitCode, stdout, stderr } = await cliScene({ dataDir, env, fetch, untilStopped: never }).run(
        ...['dev', '--json', '--', process.execPath, '-e', script],
      );
      const report = JSON.parse(stdout) as { auth_url: string; base_url: string; audience: string };
      const { auth_url, base_url } = report;
      expect(report.audience).toBe('https://shop.test');
      expect(exitCode).toBe(7);
      expect(stderr).toContain(`${process.execPath} ended with exit code 7, and dev with it\n`);
      expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
        TILLGATE_PORT: new URL(base_url).port,
        TILLGATE_BASE_URL: base_url,
        TILLGATE_AUTH_URL: auth_url,
        TILLGATE_AUDIENCE: 'https://shop.test',
        TILLGATE_GENERATIONS: `${auth_url}/generations`,
        NODE_OPTIONS: expect.stringContaining('observer.cjs'),
      });
    },
  );

  it('starts no token server when an authorization server is configured', async () => {
    const script = 'process.exit(process.env.TILLGATE_AUTH_URL === "https://login.test" ? 0 : 1)';
    const env = { ...ANY_PORTS, TILLGATE_AUTH_URL: 'https://login.test' };
    const scene = cliScene({ dataDir: newDataDir(), env, fetch, untilStopped: never });
    const outcome = await scene.run('dev', '--', process.execPath, '-e', script);
    expect(outcome).toEqual(success(''));
  });

  it('says which command cannot be started', async () => {
    const scene = cliScene({ dataDir: newDataDir(), env: ANY_PORTS, fetch, untilStopped: never });
    const stderr = 'tillgate: cannot start ./no-such-command: spawn ./no-such-command ENOENT\n';
    expect(await scene.run('dev', '--', './no-such-command')).toMatchObject({ exitCode: 2, stderr });
  });

  it('ends with 1, and its command too, when another token server has changed its directory', async () => {
    const dataDir = newDataDir();
    const scene = cliScene({ dataDir, env: ANY_PORTS, fetch, untilStopped: never });
    const outcome = scene.run('dev', '--json', ...IDLE);
    while (!scene.output().endsWith('}\n')) await new Promise((resolve) => setImmediate(resolve));
    const { auth_url } = JSON.parse(scene.output()) as { auth_url: string };
    const file = join(dataDir, 'state.json');
    writeFileSync(file, `${readFileSync(file, 'utf8')} `);
    const { status } = await fetch(`${auth_url}/clients/kiosk`, { method: 'DELETE' });
    expect(status).toBe(503);
    const { exitCode, stderr } = await outcome;
    const error = `another process has changed ${file}: this token server stops, so that no change is undone; run one for each data directory`;
    expect([exitCode, JSON.parse(stderr)]).toEqual([1, { error, exit_code: 1 }]);
  });

  it('passes the signal on, and ends with the exit code of a command that it ended', async () => {
    const { exitCode } = await whileDevRuns(IDLE);
    expect(exitCode).toBe(143);
  });

  it('ends with 78 in production, where the embedded token server does not run', async () => {
    expect(await cliScene({ env: { ...ANY_PORTS, NODE_ENV: 'production' } }).run('dev', ...IDLE)).toEqual(
      failure(
        78,
        'wrong configuration:\n  - NODE_ENV: got "production", where the embedded token server does not run; set TILLGATE_AUTH_URL to your authorization server',
      ),
    );
  });

  it('says which variable to change when the port is taken, and starts no command', async () => {
    await whileDevRuns(['--token-server'], async (_run, { auth_url }) => {
      const { port } = new URL(auth_url);
      const second = cliScene({ dataDir: newDataDir(), env: { ...ANY_PORTS, TILLGATE_AUTH_PORT: port } });
      expect(await second.run('dev', ...IDLE)).toEqual(
        failure(
          1,
          `cannot listen on http://127.0.0.1:${port}: another process does; stop it, or set TILLGATE_AUTH_PORT to a free port`,
        ),
      );
    });
  });
});

it('dev --token-server: another source than its own log is a wrong configuration', async () => {
  const { port, close } = await listen(() => {});
  await close();
  const settings = readSettings({
    TILLGATE_AUTH_PORT: String(port),
    TILLGATE_DATA_DIR: newDataDir(),
    TILLGATE_GENERATIONS: 'http://till:geheim@127.0.0.1:4999/generations',
  });
  await expect(startTokenServer(settings, recordingLogger(), API)).rejects.toMatchObject({
    name: 'ConfigurationError',
    problems: [
      'TILLGATE_GENERATIONS: names another log than that of the embedded token server; leave it out, or set TILLGATE_AUTH_URL to your authorization server',
    ],
  });
});
