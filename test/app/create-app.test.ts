import request from 'supertest';
import { createApp, createLog } from '../../src/app';
import { dpop, mtls } from '../../src/gate/possession';
import type { App, AppOptions, RequestEvent } from '../../src/app';
import { readSettings } from '../../src/gate/env/settings';
import { createTestIssuer, expectProblem } from '../../src/testing';

const issuer = createTestIssuer();
const token = issuer.token({ clientId: 'pos-17', scope: 'orders:read' });

interface Scene {
  readonly app: App;
  readonly events: RequestEvent[];
  /** Everything that was logged, as one string. */
  readonly logged: () => string;
}

const opened: App[] = [];

function scene(env: Record<string, string> = {}, options: Partial<AppOptions> = {}): Scene {
  const lines: string[] = [];
  const events: RequestEvent[] = [];
  const app = createApp({
    settings: readSettings({ TILLGATE_AUTH_URL: 'https://login.test', ...env }),
    gate: issuer.options,
    logger: createLog({ level: 'trace', destination: { write: (line) => void lines.push(line) } }),
    onRequest: (event) => events.push(event),
    ...options,
  });
  opened.push(app);
  return { app, events, logged: () => lines.join('') };
}

afterAll(() => Promise.all(opened.map((app) => app.close())));

describe('the scaffold', () => {
  const { app, events } = scene();

  it('serves a placeholder to a client with the scope', async () => {
    const response = await request(app.handler).get('/v1/orders').set('Authorization', `Bearer ${token}`);

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
    const response = await request(app.handler).get('/v1/orders').set('X-Request-Id', 'till-7.1');

    expectProblem(response, { status: 401, code: 'missing_token' });
    expect(response.body.request_id).toBe('till-7.1');
    expect(response.body.type).toBe('http://127.0.0.1:3000/problems/missing_token');
    expect((await request(app.handler).get(new URL(response.body.type).pathname)).status).toBe(200);
    expect(response.headers['www-authenticate']).toBe(
      'Bearer realm="api", resource_metadata="http://127.0.0.1:3000/.well-known/oauth-protected-resource"',
    );
  });

  it.each(['/', '/openapi.yaml', '/openapi.json', '/livez', '/readyz', '/problems/not_found'])(
    'responds to another method than GET, HEAD and OPTIONS on %s with 405 and Allow',
    async (path) => {
      for (const method of ['post', 'trace'] as const) {
        const response = await request(app.handler)[method](path);
        expectProblem(response, { status: 405, code: 'method_not_allowed' });
        expect(response.headers['allow']).toBe('GET, HEAD');
      }
      expect((await request(app.handler).head(path)).status).toBe(200);
      const { status, headers } = await request(app.handler).options(path);
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
    const { app } = scene();
    app.drain();
    const response = await request(app.handler).get(path);

    expectProblem(response, { status, code, type: `http://127.0.0.1:3000/problems/${code}` });
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
  });

  it('refuses a token in a form body', async () => {
    const response = await request(app.handler).post('/v1/orders').type('form').send({ access_token: token });

    expectProblem(response, { status: 400, code: 'token_in_body' });
  });

  it('refuses a form beyond 16 kB without reading it', async () => {
    const response = await request(app.handler)
      .post('/v1/orders')
      .type('form')
      .send(`a=${'x'.repeat(17_000)}`);

    expectProblem(response, { status: 413, code: 'payload_too_large' });
  });

  it('publishes its metadata without a token', async () => {
    const response = await request(app.handler).get('/.well-known/oauth-protected-resource');

    expect(response.body).toEqual({
      resource: 'http://127.0.0.1:3000',
      authorization_servers: ['https://login.test'],
      bearer_methods_supported: ['header'],
    });
  });

  it('publishes how its gate binds tokens, and starts with a base URL without TLS', async () => {
    const gate = { ...issuer.options, possession: [dpop(), mtls()] };
    const { app: bound } = scene({ TILLGATE_BASE_URL: 'http://api.internal' }, { gate });
    const { body } = await request(bound.handler).get('/.well-known/oauth-protected-resource');
    expect(body).toMatchObject({
      resource: 'http://api.internal',
      dpop_bound_access_tokens_required: false,
      tls_client_certificate_bound_access_tokens: true,
    });
  });

  it('reports for each request who called and why it was refused', async () => {
    events.length = 0;

    await request(app.handler).get('/v1/orders?limit=1').set('Authorization', `Bearer ${token}`);
    await request(app.handler).get('/v1/items').set('Authorization', `Bearer ${token}`);
    await request(app.handler).get('/v1/orders').set('Authorization', `Bearer ${token}x`);

    expect(events).toMatchObject([
      { method: 'GET', path: '/v1/orders', status: 200, clientId: 'pos-17', reason: undefined },
      { method: 'GET', path: '/v1/items', status: 403, clientId: 'pos-17', reason: 'insufficient_scope' },
      { method: 'GET', path: '/v1/orders', status: 401, clientId: undefined, reason: 'malformed_token' },
    ]);
  });

  it('logs one line for each request, without tokens, queries or bodies', async () => {
    const quiet = scene();
    const call = (path: string) => request(quiet.app.handler).get(path);
    const parts = token.split('.');

    await call('/v1/orders?limit=geheim').set('Authorization', `Bearer ${token}`);
    await call(`/v1/orders?access_token=${token}`);
    await call(`/v1/orders/${token}`).set('Authorization', `Bearer ${token}`);
    await call('/v1/orders').set('Authorization', `Bearer ${token}, Bearer ${token}`);
    await call('/v1/orders').set('Authorization', `Bearer ${parts[0]}.${parts[1]}.AAAA`);
    await request(quiet.app.handler).post('/v1/orders').type('form').send({ access_token: token });
    await request(quiet.app.handler).post('/v1/orders').set('Authorization', `Basic ${token}`).send({ a: 'geheim' });

    expect(quiet.logged().trim().split('\n')).toHaveLength(7);
    for (const part of ['geheim', ...parts]) expect(quiet.logged()).not.toContain(part);
    expect(JSON.parse(quiet.logged().split('\n')[1] ?? '')).toMatchObject({
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
    const { app, events } = scene({ TILLGATE_RATE_LIMIT: '2/m' });
    const other = issuer.token({ clientId: 'pos-18', scope: 'orders:read' });
    const call = (bearer: string) => request(app.handler).get('/v1/orders').set('Authorization', `Bearer ${bearer}`);

    const responses = [await call(token), await call(token), await call(token), await call(other)];

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
    expect(events[2]).toMatchObject({ status: 429, clientId: 'pos-17', reason: 'rate_limited' });
  });

  it('is kept apart by issuer, in the log too: clients of two issuers may have the same id', async () => {
    const other = createTestIssuer({ issuer: 'https://partner.test' });
    const issuers = [issuer, other].map(({ options: { issuer, audience, keys } }) => ({ issuer, audience, keys }));
    const gate = { issuers, clock: () => issuer.clock.now(), unguarded: 'refuse' } as const;
    const { app, events, logged } = scene({ TILLGATE_RATE_LIMIT: '1/m' }, { gate });
    const call = (bearer: string) => request(app.handler).get('/v1/orders').set('Authorization', `Bearer ${bearer}`);
    const theirs = other.token({ clientId: 'pos-17', scope: 'orders:read' });

    const responses = [await call(token), await call(theirs), await call(token), await call(theirs)];

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
    const both = [issuer.options.issuer, 'https://partner.test'];
    expect(events.map((event) => event.issuer)).toEqual([...both, ...both]);
    const lines = logged()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { issuer: string; client_id: string });
    expect(lines.slice(-2)).toMatchObject(both.map((one) => ({ issuer: one, client_id: 'pos-17' })));
  });

  it('can be off', async () => {
    const { app } = scene({ TILLGATE_RATE_LIMIT: 'off' });

    const response = await request(app.handler).get('/v1/orders').set('Authorization', `Bearer ${token}`);

    expect(response.status).toBe(200);
    expect(response.headers).not.toHaveProperty('ratelimit');
  });
});

describe('health', () => {
  it('is alive and ready without a token', async () => {
    const { app } = scene();

    expect((await request(app.handler).get('/livez')).body).toEqual({ status: 'alive' });
    const ready = await request(app.handler).get('/readyz');
    expect(ready.status).toBe(200);
    expect(ready.body).toEqual({ status: 'ready', components: { keys: 'fresh', generations: 'fresh' } });
  });

  it('is not ready, but alive, while the keys are missing', async () => {
    const fetch = () => Promise.reject(new Error('no network'));
    const gate = { issuer: 'https://login.test', audience: 'https://api.test', fetch };
    const { app } = scene({}, { gate });

    const response = await request(app.handler).get('/readyz');

    expectProblem(response, { status: 503, code: 'not_ready' });
    expect(response.headers['retry-after']).toBe('1');
    expect(response.body.components).toEqual({ keys: 'starting', generations: 'none' });
    expect((await request(app.handler).get('/livez')).status).toBe(200);
  });

  it('is not ready, but still accepts requests, while it drains', async () => {
    const { app } = scene();

    app.drain();

    expectProblem(await request(app.handler).get('/readyz'), { status: 503, code: 'draining' });
    const response = await request(app.handler).get('/v1/orders').set('Authorization', `Bearer ${token}`);
    expect(response.status).toBe(200);
  });
});

it('options that are changed later change nothing', async () => {
  const audience = [issuer.audience];
  const seen: string[] = [];
  const gate = { ...issuer.options, audience, onDecision: () => void seen.push('first') };
  const settings = { ...readSettings({ TILLGATE_AUTH_URL: 'https://login.test', TILLGATE_RATE_LIMIT: '2/m' }) };
  const replace: AppOptions['replace'] & object = {};
  const logger = createLog({ level: 'silent' });
  const options = { settings, gate, replace, logger, onRequest: () => void seen.push('request') };
  const app = createApp(options);
  opened.push(app);

  audience[0] = 'https://evil.test';
  Object.assign(gate, { issuer: 'https://evil.test', optional: true, onDecision: () => void seen.push('second') });
  Object.assign(settings, { baseUrl: 'https://evil.test', rateLimit: undefined });
  Object.assign(options, { onRequest: () => void seen.push('later') });
  const call = (bearer: string) => request(app.handler).get('/v1/orders').auth(bearer, { type: 'bearer' });
  const evil = await call(issuer.token({ audience: 'https://evil.test', scope: 'orders:read' }));
  const responses = [await call(token), await call(token), await call(token)];

  expectProblem(evil, { status: 401, code: 'wrong_audience', type: 'http://127.0.0.1:3000/problems/wrong_audience' });
  expectProblem(await request(app.handler).get('/v1/orders'), { status: 401, code: 'missing_token' });
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 429]);
  expect(new Set(seen)).toEqual(new Set(['first', 'request']));
});
