import { existsSync, readFileSync, writeFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expectPrivate } from '../support/private-file';
import { newDataDir } from './data-dir';
import { cliScene, json } from './harness';
import type { SentRequest } from './harness';
import { whileDevRuns } from './while-dev-runs';
import { createTestIssuer } from '../../src/testing';
import { startTokenServer } from '../../src/cli/token-server';
import { readSettings } from '../../src/gate/env/settings';
import type { Settings } from '../../src/gate/env/settings';
import { recordingLogger } from '../support/log';

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

const AUTH_URL = 'https://login.test';
const issuer = createTestIssuer({ issuer: AUTH_URL });
const keys = 'keys' in issuer.options ? issuer.options.keys : undefined;

function authorizationServer({ url, headers }: SentRequest): Response {
  const { pathname } = new URL(url);
  switch (pathname) {
    case '/.well-known/openid-configuration':
      return json(200, { issuer: AUTH_URL, jwks_uri: `${AUTH_URL}/jwks` });
    case '/jwks':
      return json(200, keys);
    case '/generations':
      return headers.get('authorization') === 'Bearer geheim-geheim-geheim'
        ? json(200, {
            position: 'p',
            end: true,
            mark: { epoch: 'e', unit: 1, complete_ms: Date.now(), kept_ms: 90_000_000 },
            changes: [{ client_id: 'pos-18', generation: Date.now() + 5 }],
          })
        : json(401, {});
    default:
      return json(404, {});
  }
}

describe('serve', () => {
  it('runs the API against the authorization server until it is told to stop', async () => {
    let [accepted, superseded] = [0, 0];
    const scene = cliScene({
      env: {
        TILLGATE_AUTH_URL: AUTH_URL,
        TILLGATE_AUDIENCE: issuer.audience,
        TILLGATE_PORT: '0',
        TILLGATE_LOG_LEVEL: 'silent',
      },
      respond: authorizationServer,
      async untilStopped() {
        const { base_url } = JSON.parse(scene.output()) as { base_url: string };
        const call = (token: string) =>
          fetch(`${base_url}/v1/orders`, { headers: { Authorization: `Bearer ${token}` } });
        accepted = (await call(issuer.token({ scope: 'orders:read', generation: Date.now() }))).status;
        superseded = (await call(issuer.token({ scope: 'orders:read', generation: 1_700_000_000_000 }))).status;
      },
    });

    const { exitCode, stdout } = await scene.run('serve', '--json');

    expect({ exitCode, accepted, superseded }).toEqual({ exitCode: 0, accepted: 200, superseded: 401 });
    expect(JSON.parse(stdout)).toMatchObject({ issuer: AUTH_URL });
  });

  it('introspects opaque tokens and maps their roles to scopes, as the variables say', async () => {
    const secret = 'geheim: with %+& and \u00f6';
    const authorizations = new Set<string | null>();
    const statuses: number[] = [];
    const bodies: unknown[] = [];
    let isDown = false;
    function introspect({ headers, body }: SentRequest): Response {
      authorizations.add(headers.get('authorization'));
      if (isDown) return json(503, {});
      if (new URLSearchParams(body).get('token') !== 'opaque') return json(200, { active: false });
      const now = Math.floor(Date.now() / 1000);
      const times = { iat: now, exp: now + 3_600, generation: Date.now() };
      return json(200, {
        active: true,
        client_id: 'till',
        aud: issuer.audience,
        ...times,
        realm_access: { roles: ['till'] },
      });
    }
    const scene = cliScene({
      env: {
        ...{ TILLGATE_AUTH_URL: AUTH_URL, TILLGATE_AUDIENCE: issuer.audience },
        ...{ TILLGATE_PORT: '0', TILLGATE_LOG_LEVEL: 'trace' },
        ...{ TILLGATE_SCOPE_CLAIMS: 'scope,realm_access.roles', TILLGATE_SCOPE_MAP: '{"till":"orders:read"}' },
        ...{ TILLGATE_INTROSPECTION_CLIENT_ID: 'orders-api', TILLGATE_INTROSPECTION_CLIENT_SECRET: secret },
      },
      respond(sent) {
        if (sent.url === `${AUTH_URL}/introspect`) return introspect(sent);
        if (!sent.url.endsWith('/openid-configuration')) return authorizationServer(sent);
        const [jwks_uri, introspection_endpoint] = [`${AUTH_URL}/jwks`, `${AUTH_URL}/introspect`];
        return json(200, { issuer: AUTH_URL, jwks_uri, introspection_endpoint });
      },
      async untilStopped() {
        const { base_url } = JSON.parse(scene.output()) as { base_url: string };
        async function call(path: string, token: string): Promise<void> {
          const response = await fetch(`${base_url}${path}`, { headers: { Authorization: `Bearer ${token}` } });
          statuses.push(response.status);
          bodies.push(await response.json());
        }
        await call('/v1/orders', 'opaque');
        await call('/v1/customers', 'opaque');
        await call('/v1/orders', 'never-issued');
        await call('/v1/orders', issuer.token({ scope: 'till', generation: Date.now() }));
        isDown = true;
        await call('/v1/orders', 'another');
      },
    });

    const { stdout, stderr } = await scene.run('serve', '--json');

    expect(statuses).toEqual([200, 403, 401, 200, 503]);
    expect(bodies).toMatchObject([
      {},
      { code: 'insufficient_scope' },
      { code: 'inactive' },
      {},
      { code: 'introspection_unavailable' },
    ]);
    const formEncoded = 'geheim%3A+with+%25%2B%26+and+%C3%B6';
    const basic = Buffer.from(`orders-api:${formEncoded}`).toString('base64');
    expect([...authorizations]).toEqual([`Basic ${basic}`]);
    // The log is at its most talkative, and holds each request.
    expect(stderr.match(/"reason":"introspection_unavailable"/g)).toHaveLength(1);
    for (const hidden of ['geheim', formEncoded, basic]) expect(stdout + stderr).not.toContain(hidden);
  });

  it('reads generations with the admin token when there is one', async () => {
    let ready: unknown;
    const scene = cliScene({
      env: {
        TILLGATE_AUTH_URL: AUTH_URL,
        TILLGATE_GENERATIONS: `${AUTH_URL}/generations`,
        TILLGATE_ADMIN_TOKEN: 'geheim-geheim-geheim',
        TILLGATE_PORT: '0',
        TILLGATE_LOG_LEVEL: 'silent',
      },
      respond: authorizationServer,
      async untilStopped() {
        const { base_url } = JSON.parse(scene.output()) as { base_url: string };
        while ((ready as { status?: unknown } | undefined)?.status !== 'ready') {
          ready = await (await fetch(`${base_url}/readyz`)).json();
        }
      },
    });

    await scene.run('serve', '--json');

    expect(ready).toEqual({ status: 'ready', components: { keys: 'fresh', generations: 'fresh' } });
  });
});

describe('dev --token-server', () => {
  const dataDir = newDataDir();
  afterAll(() => rmSync(dataDir, { recursive: true }));

  async function settingsWith(generations: string): Promise<Settings> {
    const probe = createServer();
    await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => probe.close(resolve));
    const env = { TILLGATE_AUTH_PORT: String(port), TILLGATE_DATA_DIR: dataDir, TILLGATE_GENERATIONS: generations };
    return readSettings(env);
  }

  it('another source than its own log is a wrong configuration', async () => {
    const settings = await settingsWith('http://till:geheim@127.0.0.1:4999/generations');
    const failure: unknown = await startTokenServer(settings, recordingLogger(), undefined).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({
      name: 'ConfigurationError',
      problems: [
        'TILLGATE_GENERATIONS: names another log than that of the embedded token server; leave it out, or set TILLGATE_AUTH_URL to your authorization server',
      ],
    });
  });
});
