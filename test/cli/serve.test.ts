import { cliScene, json } from './harness';
import type { SentRequest } from './harness';
import { createTestIssuer } from '../../src/testing';

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
        ? json(200, { now: Date.now(), floors: [{ client_id: 'pos-18', generation: Date.now() + 5 }] })
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
    scene.close();
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
        for (
          let attempt = 0;
          attempt < 200 && (ready as { status?: unknown } | undefined)?.status !== 'ready';
          attempt++
        ) {
          ready = await (await fetch(`${base_url}/readyz`)).json();
        }
      },
    });

    await scene.run('serve', '--json');

    expect(ready).toEqual({ status: 'ready', components: { keys: 'fresh', generations: 'fresh' } });
    scene.close();
  });
});
