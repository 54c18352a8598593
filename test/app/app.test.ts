import type { Express } from 'express';
import request from 'supertest';
import { loadContract, scopesOf } from '../../src/app/contract';
import { dpop, mtls } from '../../src/gate/possession';
import { auditRoutes, createTestIssuer, expectProblem } from '../../src/testing';
import { appScene, issuer } from './app-scene';

const token = issuer.token({ clientId: 'pos-17', scope: 'orders:read' });

/** A request of a till, unless told otherwise. */
const getAs = (app: Express, bearer = token, path = '/v1/orders') =>
  request(app).get(path).set('Authorization', `Bearer ${bearer}`);

it('the routes of the scaffold, their guards and openapi.yaml agree', () => {
  expect(auditRoutes(appScene().app, 'openapi.yaml', { ignore: ['/docs', '/docs/*'] })).toEqual([]);
});

describe('the scaffold', () => {
  const { app, events } = appScene();

  it('serves a placeholder to a client with the scope', async () => {
    const response = await getAs(app);
    expect(response.status).toBe(200);
    expect(response.headers).toMatchObject({
      'x-placeholder': 'true',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      ratelimit: '"client"; r=5999; t=60',
    });
    expect(response.headers).not.toHaveProperty('x-powered-by');
  });

  it('puts the request id into the problem body', async () => {
    const response = await request(app).get('/v1/orders').set('X-Request-Id', 'till-7.1');
    expectProblem(response, { status: 401, code: 'missing_token' });
    expect(response.body.request_id).toBe('till-7.1');
    expect(response.body.type).toBe('http://127.0.0.1:3000/problems/missing_token');
    expect((await request(app).get(new URL(response.body.type).pathname)).status).toBe(200);
    expect(response.headers['www-authenticate']).toBe(
      'Bearer realm="api", resource_metadata="http://127.0.0.1:3000/.well-known/oauth-protected-resource"',
    );
  });

  it.each(['/', '/openapi.yaml', '/openapi.json', '/livez', '/readyz', '/problems/not_found'])(
    'responds to another method than GET, HEAD and OPTIONS on %s with 405 and Allow',
    async (path) => {
      for (const method of ['post', 'trace'] as const) {
        const response = await request(app)[method](path);
        expectProblem(response, { status: 405, code: 'method_not_allowed' });
        expect(response.headers['allow']).toBe('GET, HEAD');
      }
      expect((await request(app).head(path)).status).toBe(200);
      const { status, headers } = await request(app).options(path);
      expect({ status, allow: headers['allow'] }).toEqual({ status: 200, allow: 'GET, HEAD' });
    },
  );

  it.each([
    ['/nothing', 404, 'not_found'],
    ['/%zz', 404, 'not_found'],
    ['/problems/%zz', 400, 'invalid_request'],
    ['/readyz', 503, 'draining'],
    ['/v1/nothing', 401, 'missing_token'],
  ])('responds to %s without a token with %i and the problem %s, whose type is a page', async (path, status, code) => {
    const { app, drain } = appScene();
    drain();
    const response = await request(app).get(path);
    expectProblem(response, { status, code, type: `http://127.0.0.1:3000/problems/${code}` });
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
  });

  it('refuses a token in a form body', async () => {
    const response = await request(app).post('/v1/orders').type('form').send({ access_token: token });
    expectProblem(response, { status: 400, code: 'token_in_body' });
  });

  it('refuses a form beyond 16 kB without reading it', async () => {
    const response = await request(app)
      .post('/v1/orders')
      .type('form')
      .send(`a=${'x'.repeat(17_000)}`);
    expectProblem(response, { status: 413, code: 'payload_too_large' });
  });

  it('publishes its metadata without a token', async () => {
    const response = await request(app).get('/.well-known/oauth-protected-resource');
    expect(response.body).toEqual({
      resource: 'http://127.0.0.1:3000',
      authorization_servers: ['https://login.test'],
      bearer_methods_supported: ['header'],
      scopes_supported: scopesOf(loadContract()),
    });
    expect(scopesOf(loadContract())).toHaveLength(29);
    expect(response.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'access-control-allow-origin': '*',
      'cache-control': 'public, max-age=300',
    });
    const head = await request(app).head('/.well-known/oauth-protected-resource');
    expect([head.status, head.headers['content-length']]).toEqual([200, response.headers['content-length']]);
    const refused = await request(app).delete('/.well-known/oauth-protected-resource');
    expectProblem(refused, { status: 405, code: 'method_not_allowed' });
    expect(refused.headers['allow']).toBe('GET, HEAD, OPTIONS');
  });

  it('does not put the scopes that it publishes into its 401', async () => {
    const refused = await request(app).get('/v1/orders');
    expect(refused.headers['www-authenticate']).not.toContain('scope=');
  });

  it('publishes them below the path of its base URL too, where the URL goes on with it', async () => {
    const { app: below } = appScene({ TILLGATE_BASE_URL: 'https://api.test/shop' });
    const { body } = await request(below).get('/.well-known/oauth-protected-resource/shop');
    expect(body).toMatchObject({ resource: 'https://api.test/shop', scopes_supported: scopesOf(loadContract()) });
  });

  it('publishes how its gate binds tokens, and starts with a base URL without TLS', async () => {
    const gate = { ...issuer.options, possession: [dpop(), mtls()] };
    const { app: bound } = appScene({ TILLGATE_BASE_URL: 'http://api.internal' }, gate);
    const { body } = await request(bound).get('/.well-known/oauth-protected-resource');
    expect(body).toMatchObject({
      resource: 'http://api.internal',
      dpop_bound_access_tokens_required: false,
      tls_client_certificate_bound_access_tokens: true,
    });
  });

  it('reports for each request who called and why it was refused', async () => {
    const before = events().length;

    await getAs(app, token, '/v1/orders?limit=1');
    await getAs(app, token, '/v1/items');
    await getAs(app, `${token}x`);

    const logged = events().slice(before);
    expect(logged).toMatchObject([
      { method: 'GET', path: '/v1/orders', status: 200, client_id: 'pos-17' },
      { method: 'GET', path: '/v1/items', status: 403, client_id: 'pos-17', reason: 'insufficient_scope' },
      { method: 'GET', path: '/v1/orders', status: 401, reason: 'malformed_token' },
    ]);
    expect(logged[0]).not.toHaveProperty('reason');
    expect(logged[2]).not.toHaveProperty('client_id');
  });

  it('logs one line for each request, without tokens, queries or bodies', async () => {
    const quiet = appScene();
    const call = (path: string) => request(quiet.app).get(path);
    const parts = token.split('.');

    await call('/v1/orders?limit=geheim').set('Authorization', `Bearer ${token}`);
    await call(`/v1/orders?access_token=${token}`);
    await call(`/v1/orders/${token}`).set('Authorization', `Bearer ${token}`);
    await call('/v1/orders').set('Authorization', `Bearer ${token}, Bearer ${token}`);
    await call('/v1/orders').set('Authorization', `Bearer ${parts[0]}.${parts[1]}.AAAA`);
    await request(quiet.app).post('/v1/orders').type('form').send({ access_token: token });
    await request(quiet.app).post('/v1/orders').set('Authorization', `Basic ${token}`).send({ a: 'geheim' });

    expect(quiet.lines()).toHaveLength(7);
    for (const part of ['geheim', ...parts]) expect(quiet.lines().join('\n')).not.toContain(part);
    expect(quiet.events()[1]).toMatchObject({
      level: 'info',
      method: 'GET',
      path: '/v1/orders',
      status: 400,
      reason: 'token_in_query',
      msg: 'request',
    });
  });
});

describe('the rate limit', () => {
  it('is per client id: 429 with Retry-After to one, 200 to another', async () => {
    const { app, events } = appScene({ TILLGATE_RATE_LIMIT: '2/m' });
    const other = issuer.token({ clientId: 'pos-18', scope: 'orders:read' });

    const responses = [
      await getAs(app, token),
      await getAs(app, token),
      await getAs(app, token),
      await getAs(app, other),
    ];

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429, 200]);
    const [, , refused] = responses;
    expect(refused?.headers).toMatchObject({
      'content-type': 'application/problem+json; charset=utf-8',
      'retry-after': '60',
      ratelimit: '"client"; r=0; t=60',
    });
    expect(refused?.headers['ratelimit-policy']).toMatch(/^"client"; q=2; w=60; pk=:\w+:$/);
    expect(refused?.body).toMatchObject({
      status: 429,
      code: 'rate_limited',
      detail: 'This client may send 2 requests in 60 s; Retry-After says when to go on.',
    });
    expect(events()[2]).toMatchObject({ status: 429, client_id: 'pos-17', reason: 'rate_limited' });
  });

  it('is kept apart by issuer, in the log too: clients of two issuers may have the same id', async () => {
    const other = createTestIssuer({ issuer: 'https://partner.test' });
    const issuers = [issuer, other].map(({ options: { issuer, audience, keys } }) => ({ issuer, audience, keys }));
    const gate = { issuers, clock: () => issuer.clock.now(), unguarded: 'refuse' } as const;
    const { app, events } = appScene({ TILLGATE_RATE_LIMIT: '1/m' }, gate);
    const theirs = other.token({ clientId: 'pos-17', scope: 'orders:read' });

    const responses = [
      await getAs(app, token),
      await getAs(app, theirs),
      await getAs(app, token),
      await getAs(app, theirs),
    ];

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
    const both = [issuer.options.issuer, 'https://partner.test'];
    expect(events().map((event) => [event['issuer'], event['client_id']])).toEqual(
      [...both, ...both].map((one) => [one, 'pos-17']),
    );
  });

  it('can be off', async () => {
    const { app } = appScene({ TILLGATE_RATE_LIMIT: 'off' });
    const response = await getAs(app);
    expect(response.status).toBe(200);
    expect(response.headers).not.toHaveProperty('ratelimit');
  });
});

describe('health', () => {
  it('is alive and ready without a token', async () => {
    const { app } = appScene();
    expect((await request(app).get('/livez')).body).toEqual({ status: 'alive' });
    const ready = await request(app).get('/readyz');
    expect(ready.status).toBe(200);
    expect(ready.body).toEqual({ status: 'ready', components: { keys: 'fresh', generations: 'fresh' } });
  });

  it('is not ready, but alive, while the keys are missing', async () => {
    const fetch = () => Promise.reject(new Error('no network'));
    const gate = { issuer: 'https://login.test', audience: 'https://api.test', fetch };
    const { app } = appScene({}, gate);
    const response = await request(app).get('/readyz');
    expectProblem(response, { status: 503, code: 'not_ready' });
    expect(response.headers['retry-after']).toBe('1');
    expect(response.body.components).toEqual({ keys: 'starting', generations: 'none' });
    expect((await request(app).get('/livez')).status).toBe(200);
  });

  it('is not ready, but still accepts requests, while it drains', async () => {
    const { app, drain } = appScene();
    drain();
    expectProblem(await request(app).get('/readyz'), { status: 503, code: 'draining' });
    const response = await getAs(app);
    expect(response.status).toBe(200);
  });
});
