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
