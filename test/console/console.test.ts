import { once } from 'node:events';
import { join } from 'node:path';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import request from 'supertest';
import { startDev } from './dev-scene';
import type { DevScene } from './dev-scene';
import { createConsole } from '../../src/console/console';
import type { ConsoleOptions } from '../../src/console/console';
import { closeAll, startServer } from '../auth-server/fixtures';

let dev: DevScene;

describe('the console of a scaffold with requests', () => {
  beforeAll(async () => {
    dev = await startDev();
  });
  afterAll(() => dev.stop());

  const lastDenied = async () => (await dev.call('get', '/console/api/requests/last-denied').expect(200)).body;
  const timelineOf = async (id: string) => {
    const { body } = await dev.call('get', '/console/api/state');
    return body.clients.find(({ client_id }: { client_id: string }) => client_id === id).timeline;
  };

  describe('why the last request was denied', () => {
    it('names the missing scope, what the token has, and what to do', async () => {
      const token = await dev.token(dev.kiosk, 'orders:read');
      const { headers } = await dev.api('post', '/v1/orders', token).expect(403);
      expect(await lastDenied()).toMatchObject({
        server: 'api',
        method: 'POST',
        path: '/v1/orders',
        status: 403,
        client_id: 'kiosk',
        reason: 'insufficient_scope',
        request_id: headers['x-request-id'],
        why: {
          outcome: 'refused',
          got: 'orders:read',
          expected: 'orders:write',
          fix: 'Add orders:write to the scopes of kiosk, if it should have this access, then request a new token.',
          claims: { client_id: 'kiosk', scope: 'orders:read' },
          verified: true,
        },
      });
    });

    it('says that the client only has to ask for a scope that it is registered with', async () => {
      await dev.api('post', '/v1/orders', await dev.token(dev.till, 'orders:read')).expect(403);
      expect((await lastDenied()).why.fix).toBe(
        'Request the token with scope=orders:write: pos-terminal is registered with it.',
      );
    });

    it('suggests no other configuration for a token that anybody could have made', async () => {
      const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
      const madeUp = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ typ: 'Bearer', azp: 'till-7' })}.AAAA`;
      await dev.api('get', '/v1/orders', madeUp).expect(401);
      const { reason, why } = await lastDenied();
      expect({ reason, verified: why.verified, fix: why.fix }).toEqual({
        reason: 'wrong_type',
        verified: false,
        fix: 'Send the access_token of the token response, not the id_token.',
      });
    });

    it('lists the checks in order up to the one that failed: a token discarded with the Description', async () => {
      const client = await dev.register('till-7', 'orders:read', 'Front');
      const token = await dev.token(client, 'orders:read');
      await dev.api('get', '/v1/orders', token).expect(200);
      await dev.call('patch', '/clients/till-7', { description: 'Back' }).expect(200);
      await dev.api('get', '/v1/orders', token).expect(401);
      const { client_id, reason, why } = await lastDenied();
      expect({ client_id, reason, verified: why.verified }).toEqual({
        client_id: 'till-7',
        reason: 'superseded',
        verified: true,
      });
      expect(why.checks.map(({ check, outcome }: Record<string, string>) => `${check} ${outcome}`)).toEqual([
        'structure passed',
        'header passed',
        'key passed',
        'signature passed',
        'claims passed',
        'generation failed',
        'scope not reached',
      ]);
      const [{ generation }, before] = await timelineOf('till-7');
      expect(why).toMatchObject({ got: String(before.generation), expected: `${generation} or later` });
    });

    it('explains a request without a token', async () => {
      await dev.api('get', '/v1/items').expect(401);
      expect((await lastDenied()).why).toMatchObject({
        got: 'no Authorization header',
        expected: 'Authorization: Bearer <ACCESS_TOKEN>',
        verified: false,
      });
    });

    it('shows what the token server said, and to whom', async () => {
      const form = { grant_type: 'client_credentials', client_id: 'kiosk', client_secret: 'no', scope: 'orders:read' };
      await dev.call('post', '/connect/token').type('form').send(form).expect(401);
      expect(await lastDenied()).toMatchObject({ server: 'tokens', client_id: 'kiosk', reason: 'invalid_client' });
    });
  });

  it('filters requests by server and status, newest first', async () => {
    const list = async (query: string): Promise<{ id: number; server: string; status: number }[]> =>
      (await dev.call('get', `/console/api/requests?${query}`)).body.requests;
    await dev.api('get', '/v1/nothing', await dev.token(dev.till, 'orders:read'));
    const all = await list('');
    expect(all.map(({ id }) => id)).toEqual(all.map(({ id }) => id).sort((a, b) => b - a));
    for (const { status } of await list('status=denied')) expect([401, 403]).toContain(status);
    for (const { status } of await list('status=4xx')) expect(Math.floor(status / 100)).toBe(4);
    expect((await list('status=404&server=api&limit=1')).map(({ status }) => status)).toEqual([404]);
    expect(new Set((await list('server=tokens')).map(({ server }) => server))).toEqual(new Set(['tokens']));
  });

  it('keeps a timeline of generations with what began each', async () => {
    await dev.register('till-8', 'orders:read items:read', 'Eight');
    await dev.call('patch', '/clients/till-8', { scope: 'orders:read' }).expect(200);
    await dev.call('post', '/clients/till-8/secrets', {}).expect(201);
    await dev.call('post', '/clients/till-8/revoke').expect(200);
    await dev.call('patch', '/clients/till-8', { disabled: true }).expect(200);
    expect((await timelineOf('till-8')).map(({ cause }: { cause: string }) => cause)).toEqual([
      'disabled',
      'tokens revoked',
      'secret rotated',
      'scopes removed: items:read',
      'registered',
    ]);
  });

  it('links a reason to the page that explains it', async () => {
    await dev.api('get', '/v1/items').expect(401);
    expect((await lastDenied()).type).toBe(`${dev.base}/problems/missing_token`);
  });

  describe('replay', () => {
    const replay = (id: number | string, body: object = {}) =>
      dev.call('post', `/console/api/requests/${id}/replay`, body);

    it('sends a request again, as its client with a new token', async () => {
      await dev.api('post', '/v1/orders', await dev.token(dev.till, 'orders:read')).expect(403);
      const { id } = await lastDenied();
      const { body } = await replay(id, { body: {} }).expect(200);
      expect(body.status).toBe(400);
      expect(JSON.parse(body.text)).toMatchObject({ code: 'invalid_request' });
      const { body: list } = await dev.call('get', '/console/api/requests?server=api&limit=1');
      expect(list.requests[0]).toMatchObject({ method: 'POST', path: '/v1/orders', client_id: 'pos-terminal' });
    });

    it('sends no token where there was none', async () => {
      await dev.api('get', '/v1/items').expect(401);
      const { body } = await replay((await lastDenied()).id).expect(200);
      expect(JSON.parse(body.text).code).toBe('missing_token');
    });

    it('says what is missing for a client whose secret is not kept here', async () => {
      const client = await dev.register('till-5', 'orders:read');
      await dev.api('post', '/v1/orders', await dev.token(client, 'orders:read')).expect(403);
      const { body } = await replay((await lastDenied()).id).expect(409);
      expect(body).toMatchObject({ code: 'not_replayable', detail: expect.stringContaining('secret of till-5') });
    });

    it('refuses a request to the token server, and a path of which a part was left out', async () => {
      const form = { grant_type: 'client_credentials', client_id: 'kiosk', client_secret: 'no', scope: 'orders:read' };
      await dev.call('post', '/connect/token').type('form').send(form).expect(401);
      await replay((await lastDenied()).id).expect(409);
      await dev.api('get', `/v1/orders/${'a'.repeat(300)}`).expect(401);
      await replay((await lastDenied()).id).expect(409);
      await replay('nothing').expect(404);
    });

    it('takes JSON only, which a form of another page cannot send', async () => {
      await dev.api('get', '/v1/items').expect(401);
      const path = `/console/api/requests/${(await lastDenied()).id}/replay`;
      await dev.call('post', path).type('form').send('a=b').expect(400);
      await dev.call('post', path).type('text/plain').send('{}').expect(400);
    });
  });

  it('names the command that finds these servers from another terminal', async () => {
    const { body } = await dev.call('get', '/console/api/state').expect(200);
    expect(body.command).toContain(`TILLGATE_AUTH_PORT=${new URL(dev.auth).port} `);
    expect(body.command).toMatch(/ npx tillgate$| npm run -s tillgate --$|tillgate$/);
  });

  describe('the token inspector', () => {
    const inspect = (body: object | undefined) => dev.call('post', '/console/api/inspect', body);

    it('says for which routes a token would be accepted', async () => {
      const { body } = await inspect({ token: await dev.token(dev.till, 'orders:read menus:read') }).expect(200);
      expect(body).toMatchObject({ outcome: 'authenticated', status: 200, claims: { client_id: 'pos-terminal' } });
      expect(body.routes).toContain('GET /v1/orders/{id}');
      expect(body.routes).toContain('GET /v1/menus');
      expect(body.routes).not.toContain('POST /v1/orders');
    });

    it('says why a token is refused, and what to do', async () => {
      const [header, payload] = (await dev.token(dev.till, 'orders:read')).split('.');
      const { body } = await inspect({ token: `${header}.${payload}.${'A'.repeat(342)}` }).expect(200);
      expect(body).toMatchObject({ outcome: 'refused', status: 401, verified: false, routes: [] });
      expect(body.checks.find(({ outcome }: { outcome: string }) => outcome === 'failed').reason).toBe('bad_signature');
      expect(body.fix).toMatch(/\w/);
      const opaque = await inspect({ token: 'opaque' }).expect(200);
      expect(opaque.body.fix).toContain('the token is opaque');
    });

    it.each([undefined, {}, { token: '' }, { token: 7 }, { token: ['a'] }])('refuses the body %j', async (body) => {
      await inspect(body).expect(400);
    });
  });

  it('links to the documentation page of the scaffold', async () => {
    const { body } = await dev.call('get', '/console/api/state').expect(200);
    expect(body.docs_url).toBe(`${body.base_url}/docs`);
    await dev.api('get', '/docs').expect(200);
  });

  it('tells open pages of each request and of changed clients', async () => {
    const { response, text } = await dev.events();
    expect(response.headers['content-type']).toMatch(/^text\/event-stream/);
    await dev.register('till-6', 'orders:read');
    while (!text().includes('event: request')) await once(response, 'data');
    expect(text()).toContain('event: clients\ndata: {}\n\n');
    expect(text()).toContain('"path":"/clients","status":201');
    response.destroy();
  });

  it('explains the requests of an app of your own, started with --app', async () => {
    const variables = { ...process.env };
    const own = await startDev({}, ['--app', join(__dirname, 'own-app.cjs')]);
    try {
      const token = await own.token(own.kiosk, 'orders:read');
      await own.api('get', '/reports', token).expect(403);
      const { body } = await own.call('get', '/console/api/requests/last-denied').expect(200);
      expect(body).toMatchObject({ path: '/reports', why: { got: 'orders:read', expected: 'reports:read' } });
      const state = (await own.call('get', '/console/api/state')).body;
      expect(state).toMatchObject({ docs_url: null, routes: [{ method: 'GET', path: '/reports' }] });
    } finally {
      await own.stop();
      // The command sets variables for apps that read them.
      for (const name of Object.keys(process.env)) if (!(name in variables)) delete process.env[name];
    }
  });
});

describe('what the console promises', () => {
  beforeAll(async () => {
    dev = await startDev();
  });
  afterAll(() => dev.stop());
  afterEach(closeAll);

  const ADMIN_TOKEN = 'admin-token-of-a-test';
  const API = ['/console/api/state', '/console/api/requests', '/console/api/requests/1', '/console/api/events'];

  describe('the page', () => {
    it('allows scripts and styles of this server only, and no HTML from text', async () => {
      const { headers, text } = await dev.call('get', '/console').expect(200);
      expect(headers['content-security-policy']).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; " +
          "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      );
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
      expect(headers).not.toHaveProperty('set-cookie');
      expect(text).not.toMatch(/<style|style=|<script>| on\w+=/);
    });

    it.each(['/console/console.js', '/console/console.css'])('loads %s', async (path) => {
      await dev.call('get', path).expect(200);
    });

    it('serves nothing else of its folder', async () => {
      await dev.call('get', '/console/index.html').expect(404);
      await dev.call('get', '/console/..%2fconsole.ts').expect(404);
    });
  });

  describe('is for this machine', () => {
    it.each([
      ['Host', 'evil.example'],
      ['Origin', 'http://evil.example'],
      ['Origin', 'null'],
      ['Sec-Fetch-Site', 'same-site'],
      ['X-Forwarded-For', '192.0.2.1'],
    ])('and refuses %s: %s', async (name, value) => {
      for (const path of ['/console', '/console/console.js', ...API]) {
        const { body } = await dev.call('get', path).set(name, value).expect(403);
        expect(body).toMatchObject({ code: 'forbidden' });
      }
      await dev.call('post', '/console/api/inspect', { token: 'a' }).set(name, value).expect(403);
      await dev.call('post', '/console/api/requests/1/replay', {}).set(name, value).expect(403);
      await dev.call('delete', '/console/api/requests').set(name, value).expect(403);
    });

    it('but a link of another page may lead to the page, which holds no data', async () => {
      const link = { 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' };
      await dev.call('get', '/console').set(link).expect(200);
      for (const path of API) await dev.call('get', path).set(link).expect(403);
      await dev.call('get', '/console').set(link).set('Host', 'evil.example').expect(403);
      await dev
        .call('get', '/console')
        .set({ ...link, 'Sec-Fetch-Dest': 'iframe' })
        .expect(403);
    });
  });

  it('keeps no secret and no token, wherever they were sent', async () => {
    const { response, text } = await dev.events();
    const client = await dev.register('till-1', 'orders:read orders:write');
    const token = await dev.token(client, 'orders:read');
    const { body: rotated } = await dev.call('post', '/clients/till-1/secrets', {}).expect(201);
    const { body: described } = await dev.call('patch', '/clients/till-1', { description: 'x' }).expect(200);
    await dev.api('get', '/v1/orders', token).expect(401);
    await dev.api('get', `/v1/orders?access_token=${token}`).expect(400);
    await dev.api('get', `/v1/orders/${token}`, described.token.access_token).expect(400);
    await dev.api('post', '/v1/orders', token);
    const swapped = { grant_type: 'client_credentials', client_id: client.client_secret, client_secret: 'till-1' };
    await dev.call('post', '/connect/token').type('form').send(swapped);
    await dev.call('get', `/clients/${client.client_secret}`).expect(404);
    const inspection = await dev.call('post', '/console/api/inspect', { token }).expect(200);
    while (!text().includes('/connect/token","status":401')) await once(response, 'data');

    const { body } = await dev.call('get', '/console/api/requests');
    const entries = [];
    for (const { id } of body.requests) entries.push((await dev.call('get', `/console/api/requests/${id}`)).text);
    const state = (await dev.call('get', '/console/api/state')).text;
    const shown = [JSON.stringify(body), ...entries, state, inspection.text, text()].join('\n');
    const secrets = [client.client_secret, rotated.client_secret, dev.till.client_secret];
    const tokens = [token, described.token.access_token as string].flatMap((one) => [one, ...one.split('.')]);
    for (const hidden of [...secrets, ...tokens]) expect(shown).not.toContain(hidden);
    expect(shown).toContain('till-1');
    response.destroy();
  });

  it('sends a Description as JSON, which no browser takes for HTML', async () => {
    const markup = '<img src=x onerror=alert(1)>';
    await dev.register('till-2', 'orders:read', markup);
    const { headers, body } = await dev.call('get', '/console/api/state');
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-content-type-options': 'nosniff',
    });
    expect(body.clients.at(-1).description).toBe(markup);
  });

  describe('is off', () => {
    it('where the token server is not that of tillgate dev', async () => {
      const server = await startServer();
      expect((await server.get('/console')).status).toBe(404);
    });

    it('with an admin token, which a page cannot send', async () => {
      const guarded = await startDev({ TILLGATE_ADMIN_TOKEN: ADMIN_TOKEN });
      const { status: page } = await guarded.call('get', '/console');
      const api = await guarded.call('get', '/console/api/state').set('Authorization', `Bearer ${ADMIN_TOKEN}`);
      await guarded.stop();
      expect([page, api.status]).toEqual([404, 404]);
    });

    it('in production', () => {
      expect(() => createConsole({ ...OPTIONS, production: true })).toThrow('refuses NODE_ENV=production');
    });
  });

  const OPTIONS: ConsoleOptions = {
    baseUrl: 'http://127.0.0.1:3000',
    issuer: 'http://127.0.0.1:4000',
    audience: 'http://127.0.0.1:3000',
    clients: () => [],
    scopes: undefined,
    gate: { issuer: 'http://127.0.0.1:4000', audience: 'http://127.0.0.1:3000' },
    advise: () => undefined,
  };

  it('keeps a bounded number of requests', async () => {
    const console = createConsole({ ...OPTIONS, capacity: 3 });
    const server = console.serve((_req, res) => void res.end('{}'));
    for (let count = 0; count < 5; count++) await request(server).get(`/clients/till-${count}`).expect(200);
    const { body } = await request(server).get('/console/api/requests').expect(200);
    expect(body.requests.map(({ path }: { path: string }) => path)).toEqual([
      '/clients/till-4',
      '/clients/till-3',
      '/clients/till-2',
    ]);
    await request(server).get('/console/api/requests/1').expect(404);
    await request(server).delete('/console/api/requests').expect(204);
    expect((await request(server).get('/console/api/requests')).body).toEqual({ requests: [] });
    await console.close();
  });

  it('replays no target that names another host', async () => {
    const console = createConsole(OPTIONS);
    const server = console.serve((_req, res) => void res.end());
    const call = jest.fn();
    const api = console.observe((_req, res) => void res.emit('close'), { docsUrl: undefined, command: '', call });
    const req = Object.assign(new IncomingMessage(new Socket()), { url: '@evil.example/', method: 'GET' });
    api(req, new ServerResponse(req));
    await request(server).post('/console/api/requests/1/replay').send({}).expect(409);
    expect(call).not.toHaveBeenCalled();
    await console.close();
  });

  it('ends the event stream of a page that does not read it', async () => {
    const console = createConsole(OPTIONS);
    const server = createServer(console.serve((_req, res) => void res.end())).listen(0, '127.0.0.1');
    const connected = once(server, 'connection') as Promise<[Socket]>;
    await once(server, 'listening');
    const reader = connect((server.address() as AddressInfo).port, '127.0.0.1');
    reader.write('GET /console/api/events HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await once(reader, 'readable');
    const [connection] = await connected;
    const api = console.observe((_req, res) => void res.emit('close'));
    // More than the operating system holds for a connection.
    for (let count = 0; count < 4_000; count++) {
      const req = Object.assign(new IncomingMessage(new Socket()), { url: `/${'a/'.repeat(2_000)}`, method: 'GET' });
      api(req, new ServerResponse(req));
    }
    expect(connection.destroyed).toBe(true);
    reader.destroy();
    await console.close();
    server.close();
  });
});
