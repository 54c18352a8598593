import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expectPrivate } from '../support/private-file';
import { newDataDir } from './data-dir';
import { cliScene } from './harness';
import { whileDevRuns } from './while-dev-runs';

const ANY_PORTS = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'silent' };

describe('dev', () => {
  const dataDir = newDataDir();

  it('registers two demo clients at the first start, and keeps their secrets for its owner only', async () => {
    const { exitCode, report } = await whileDevRuns([], undefined, {}, dataDir);

    expect({ exitCode, report }).toMatchObject({ exitCode: 0, report: { ready: true, embedded: true } });
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
    const { stdout } = await cliScene({ dataDir, env: ANY_PORTS, fetch }).run('dev');
    const kept = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
      embedded: Record<string, { client_secret: string }>;
    };

    expect(stdout).toMatch(/Tillgate is ready in \d+ ms/);
    expect(Object.keys(kept.embedded)).toEqual(['pos-terminal', 'kiosk']);
    for (const { client_secret } of Object.values(kept.embedded)) expect(stdout).not.toContain(client_secret);
    expect(stdout).toContain('TOKEN=$(tillgate token pos-terminal); curl -i http://127.0.0.1:');
  });

  it('runs the whole story: token, call, 403, new Description, 401 for the old token, 200 for the new', async () => {
    await whileDevRuns([], async (run) => {
      const status = async (...argv: string[]) => JSON.parse((await run('call', ...argv, '--json')).stdout) as object;

      expect(await status('GET', '/v1/orders', '--as', 'pos-terminal')).toMatchObject({ status: 200 });
      expect(await status('POST', '/v1/orders', '--as', 'kiosk', '--data', '{}')).toMatchObject({ status: 403 });
      const old = (await run('token', 'pos-terminal')).stdout.trim();
      const described = JSON.parse((await run('clients', 'describe', 'pos-terminal', 'Till 2', '--json')).stdout);

      expect(await status('GET', '/v1/orders', '--token', old)).toMatchObject({
        status: 401,
        body: { code: 'superseded' },
      });
      expect(await status('GET', '/v1/orders', '--token', described.token.access_token)).toMatchObject({ status: 200 });
    });
  });

  it('on ports of its own is found by the other commands as long as it runs', async () => {
    const dataDir = newDataDir();
    const file = join(dataDir, 'servers.json');
    const location = { TILLGATE_HOST: 'localhost' };
    await whileDevRuns(
      ['--port', '0', '--auth-port', '0'],
      async (_run, { base_url = '', auth_url }) => {
        const ports = { TILLGATE_PORT: new URL(base_url).port, TILLGATE_AUTH_PORT: new URL(auth_url).port };
        expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ ...location, ...ports });
        const { exitCode, stdout } = await cliScene({ dataDir, fetch }).run(
          'call',
          'GET',
          '/v1/orders',
          '--as',
          'kiosk',
        );
        expect([exitCode, stdout.split('\n')[0]]).toEqual([0, '200 OK']);
        // A variable that is set counts more.
        const other = cliScene({ dataDir, env: { TILLGATE_AUTH_PORT: '1' } });
        expect((await other.run('clients', 'list')).stderr).toContain('no response from http://localhost:1 ');
      },
      { ...location, TILLGATE_PORT: '1', TILLGATE_AUTH_PORT: '2' },
      dataDir,
    );
    expect(existsSync(file)).toBe(false);
  });

  it('that was killed on ports of its own is not looked for once it runs on others', async () => {
    const dataDir = newDataDir();
    writeFileSync(
      join(dataDir, 'servers.json'),
      '{"TILLGATE_PORT":"1","TILLGATE_AUTH_PORT":"2","NODE_ENV":"production"}',
    );
    await whileDevRuns(
      [],
      async (_run, { base_url = '' }) => {
        const { stdout } = await cliScene({ dataDir, fetch }).run(
          'call',
          'GET',
          '/v1/orders',
          '--as',
          'kiosk',
          '--json',
        );
        expect(JSON.parse(stdout)).toMatchObject({ status: 200 });
        expect(base_url).not.toBe('http://127.0.0.1:1');
      },
      {},
      dataDir,
    );
  });

  it.each(['', '[]', '{"TILLGATE_PORT":7,"TILLGATE_AUTH_URL":"https://evil.test"}'])(
    'no variable is read from the record %j',
    async (text) => {
      const dataDir = newDataDir();
      writeFileSync(join(dataDir, 'servers.json'), text);
      expect((await cliScene({ dataDir }).run('clients', 'list')).stderr).toContain(
        'no response from http://127.0.0.1:4000 ',
      );
    },
  );

  it('starts the token server that the variables of .env name, and uses the one that runs already', async () => {
    const dataDir = newDataDir();
    await whileDevRuns(['--token-server'], async (_run, { auth_url }) => {
      const { report } = await whileDevRuns([], undefined, {
        ...{ TILLGATE_AUTH_URL: auth_url, TILLGATE_AUTH_PORT: new URL(auth_url).port },
      });
      expect(report).toMatchObject({ embedded: false, auth_url });
      writeFileSync(
        join(dataDir, '.env'),
        `TILLGATE_AUTH_URL=${auth_url}\nTILLGATE_GENERATIONS=${auth_url}/generations`,
      );
    });
    const { auth_url } = { auth_url: /=(\S+)/.exec(readFileSync(join(dataDir, '.env'), 'utf8'))?.[1] ?? '' };
    const port = { TILLGATE_AUTH_PORT: new URL(auth_url).port };
    const call = ['call', 'GET', '/v1/orders', '--as', 'kiosk', '--json'];
    await whileDevRuns(
      [],
      async (_run, report) => {
        expect(report).toMatchObject({ embedded: true, auth_url });
        expect(JSON.parse((await cliScene({ dataDir, fetch }).run(...call)).stdout)).toMatchObject({ status: 200 });
      },
      port,
      dataDir,
    );
  });

  it('starts the API alone when an authorization server is configured', async () => {
    await whileDevRuns([], async (_run, { auth_url }) => {
      const { report } = await whileDevRuns([], undefined, { TILLGATE_AUTH_URL: auth_url });
      expect(report).toMatchObject({ ready: true, embedded: false, auth_url, clients: [] });
    });
  });

  it('ends with 78 in production, where the embedded token server does not run', async () => {
    expect(await cliScene({ env: { ...ANY_PORTS, NODE_ENV: 'production' } }).run('dev')).toEqual({
      exitCode: 78,
      stdout: '',
      stderr:
        'tillgate: wrong configuration:\n  - NODE_ENV: got "production", where the embedded token server does not run; set TILLGATE_AUTH_URL to your authorization server\n',
    });
  });

  it('says which variable to change when a port is taken, and leaves nothing running', async () => {
    await whileDevRuns([], async (_run, { base_url = '' }) => {
      const { port } = new URL(base_url);
      const second = cliScene({ dataDir: newDataDir(), env: { ...ANY_PORTS, TILLGATE_PORT: port } });

      expect(await second.run('dev')).toEqual({
        exitCode: 1,
        stdout: '',
        stderr: `tillgate: cannot listen on http://127.0.0.1:${port}: another process does; stop it, or set TILLGATE_PORT to a free port\n`,
      });
    });
  });
});
