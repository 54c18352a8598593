import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expectPrivate } from '../support/private-file';
import { cliScene } from './harness';
import type { CliScene, Outcome } from './harness';
import { newDataDir } from './data-dir';

const ANY_PORTS = { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'silent' };

interface Report {
  readonly base_url: string;
  readonly auth_url: string;
  readonly ready: boolean;
  readonly ready_ms: number;
  readonly embedded: boolean;
  readonly clients: readonly { client_id: string; client_secret: string; scope: string }[];
}

/** `dev` running in this process. `untilStopped` is called once it is ready. */
async function startDev(dataDir: string, argv: readonly string[] = ['--json'], env: Record<string, string> = {}) {
  let stop: () => void = () => {};
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  let isReady: () => void = () => {};
  const ready = new Promise<void>((resolve) => (isReady = resolve));
  const scene = cliScene({
    env: { ...ANY_PORTS, TILLGATE_DATA_DIR: dataDir, ...env },
    fetch,
    untilStopped: () => {
      isReady();
      return stopped;
    },
  });
  const outcome = scene.run('dev', ...argv);
  const early = await Promise.race([ready, outcome]);
  if (early) throw new Error(`dev ended: ${early.stderr}`);
  return {
    stdout: () => scene.output(),
    stop: (): Promise<Outcome> => {
      stop();
      scene.close();
      return outcome;
    },
  };
}

describe('dev', () => {
  const home: CliScene = cliScene({ dataDir: newDataDir() });
  afterAll(() => home.close());

  it('registers two demo clients at the first start, and keeps their secrets for its owner only', async () => {
    const dev = await startDev(home.dataDir);
    const report = JSON.parse(dev.stdout()) as Report;

    expect(report).toMatchObject({ ready: true, embedded: true });
    expect(report.clients.map(({ client_id, scope }) => [client_id, scope])).toEqual([
      [
        'pos-terminal',
        'orders:read orders:write items:read items:write menus:read menus:write payments:read payments:write',
      ],
      ['kiosk', 'orders:read items:read menus:read payments:read'],
    ]);
    const file = join(home.dataDir, 'credentials.json');
    expectPrivate(file);
    expect(readFileSync(file, 'utf8')).toContain(report.clients[0]?.client_secret);
    expect((await dev.stop()).exitCode).toBe(0);
  });

  it('registers no client at the second start and shows no secret', async () => {
    const dev = await startDev(home.dataDir, []);
    const kept = JSON.parse(readFileSync(join(home.dataDir, 'credentials.json'), 'utf8')) as {
      embedded: Record<string, { client_secret: string }>;
    };

    const text = dev.stdout();

    expect(text).toMatch(/Tillgate is ready in \d+ ms/);
    expect(Object.keys(kept.embedded)).toEqual(['pos-terminal', 'kiosk']);
    for (const { client_secret } of Object.values(kept.embedded)) expect(text).not.toContain(client_secret);
    expect(text).toContain('TOKEN=$(tillgate token pos-terminal); curl -i http://127.0.0.1:');
    await dev.stop();
  });

  it('runs the whole story: token, call, 403, new Description, 401 for the old token, 200 for the new', async () => {
    const dev = await startDev(home.dataDir);
    const { base_url, auth_url } = JSON.parse(dev.stdout()) as Report;
    const env = {
      TILLGATE_DATA_DIR: home.dataDir,
      TILLGATE_PORT: new URL(base_url).port,
      TILLGATE_AUTH_PORT: new URL(auth_url).port,
    };
    const cli = cliScene({ env, fetch });
    const status = async (...argv: string[]) =>
      JSON.parse((await cli.run('call', ...argv, '--json')).stdout) as { status: number; body: { code?: string } };

    expect(await status('GET', '/v1/orders', '--as', 'pos-terminal')).toMatchObject({ status: 200 });
    expect(await status('POST', '/v1/orders', '--as', 'kiosk', '--data', '{}')).toMatchObject({ status: 403 });
    const old = (await cli.run('token', 'pos-terminal')).stdout.trim();
    const described = JSON.parse((await cli.run('clients', 'describe', 'pos-terminal', 'Till 2', '--json')).stdout);

    expect(await status('GET', '/v1/orders', '--token', old)).toMatchObject({
      status: 401,
      body: { code: 'superseded' },
    });
    expect(await status('GET', '/v1/orders', '--token', described.token.access_token)).toMatchObject({ status: 200 });
    cli.close();
    await dev.stop();
  });

  it('starts the API alone when an authorization server is configured', async () => {
    const issuer = await startDev(home.dataDir);
    const { auth_url } = JSON.parse(issuer.stdout()) as Report;
    const elsewhere = cliScene();

    const dev = await startDev(elsewhere.dataDir, ['--json'], { TILLGATE_AUTH_URL: auth_url });

    expect(JSON.parse(dev.stdout())).toMatchObject({ ready: true, embedded: false, auth_url, clients: [] });
    await dev.stop();
    await issuer.stop();
    elsewhere.close();
  });

  it('ends with 78 in production, where the embedded token server does not run', async () => {
    const production = cliScene({ env: { ...ANY_PORTS, NODE_ENV: 'production' } });

    expect(await production.run('dev')).toEqual({
      exitCode: 78,
      stdout: '',
      stderr:
        'tillgate: wrong configuration:\n  - NODE_ENV: got "production", where the embedded token server does not run; set TILLGATE_AUTH_URL to your authorization server\n',
    });
    production.close();
  });

  it('says which variable to change when a port is taken, and leaves nothing running', async () => {
    const first = await startDev(home.dataDir);
    const { base_url } = JSON.parse(first.stdout()) as Report;
    const port = new URL(base_url).port;
    const second = cliScene({ dataDir: newDataDir(), env: { ...ANY_PORTS, TILLGATE_PORT: port } });

    expect(await second.run('dev')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `tillgate: cannot listen on http://127.0.0.1:${port}: another process does; stop it, or set TILLGATE_PORT to a free port\n`,
    });
    second.close();
    await first.stop();
  });
});
