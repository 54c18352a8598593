import { once } from 'node:events';
import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import request from 'supertest';
import { IDLE } from '../while-dev-runs';
import { startDev } from './dev-scene';
import type { DevScene } from './dev-scene';
import { createConsole } from '../../../src/cli/console/console';
import type { ConsoleOptions } from '../../../src/cli/console/console';
import { closeAll, startServer } from '../auth-server/fixtures';

const OPTIONS: ConsoleOptions = {
  routes: [],
  docsUrl: undefined,
  command: 'tillgate',
  call: () => Promise.reject(new Error('not called')),
  baseUrl: 'http://127.0.0.1:3000',
  issuer: 'http://127.0.0.1:4000',
  audience: 'http://127.0.0.1:3000',
  clients: () => [],
  scopes: undefined,
  gate: { issuer: 'http://127.0.0.1:4000', audience: 'http://127.0.0.1:3000' },
  advise: () => undefined,
};

let dev: DevScene;

describe('what the console promises', () => {
  beforeAll(async () => {
    dev = await startDev();
  }, 300_000);
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

    it('loads each script, what they import, and each style', async () => {
      const { text } = await dev.call('get', '/console').expect(200);
      const named = [...text.matchAll(/(?:href|src)="(\/console\/[^"]+)"/g)].map(([, path]) => path as string);
      const scripts = await Promise.all(
        ['console', 'requests', 'clients'].map((name) => dev.call('get', `/console/${name}.js`)),
      );
      const imported = scripts.flatMap(({ text: script }) =>
        [...script.matchAll(/from '\.\/(.+)'/g)].map(([, name]) => `/console/${name}`),
      );
      const paths = [...new Set([...named, ...imported])];
      expect(paths).toHaveLength(8);
      for (const path of paths) await dev.call('get', path).expect(200);
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
      await dev.call('post', '/console/api/requests', {}).set(name, value).expect(403);
      await dev.call('post', '/console/api/requests/1/replay', {}).set(name, value).expect(403);
      await dev.call('delete', '/console/api/requests').set(name, value).expect(403);
    });

    it('but a link of another page may lead to the page, which holds no data', async () => {
      const link = { 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' };
      await dev.call('get', '/console').set(link).expect(200);
      for (const path of API) await dev.call('get', path).set(link).expect(403);
      await dev.call('get', '/console').set(link).set('Host', 'evil.example').expect(403);
      const frame = { ...link, 'Sec-Fetch-Dest': 'iframe' };
      await dev.call('get', '/console').set(frame).expect(403);
    });
  });

  it('keeps no secret and no token, wherever they were sent', async () => {
    const { response, text } = await dev.events();
    const client = await dev.register('till-1', 'orders:read orders:write');
    const token = await dev.token(client, 'orders:read');
    const { body: rotated } = await dev.call('post', '/clients/till-1/secrets', {}).expect(201);
    const { body: described } = await dev.call('patch', '/clients/till-1', { description: 'x' }).expect(200);
    await dev.discarded(token);
    await dev.api('get', `/v1/orders?access_token=${token}`).expect(400);
    await dev.api('get', `/v1/orders/${token}`, described.token.access_token).expect(400);
    await dev.api('post', '/v1/orders', token);
    const swapped = { grant_type: 'client_credentials', client_id: client.client_secret, client_secret: 'till-1' };
    await dev.call('post', '/connect/token').type('form').send(swapped);
    await dev.call('get', `/clients/${client.client_secret}`).expect(404);
    const inspection = await dev.call('post', '/console/api/inspect', { token }).expect(200);
    while (!text().includes('/connect/token","status":401')) await once(response, 'data');

    await dev.observed();
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
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(body.clients.at(-1).description).toBe(markup);
  });

  describe('is off', () => {
    it('where the token server is not that of tillgate dev', async () => {
      const server = await startServer();
      expect((await server.get('/console')).status).toBe(404);
    });

    it('with an admin token, which a page cannot send', async () => {
      const guarded = await startDev({ TILLGATE_ADMIN_TOKEN: ADMIN_TOKEN }, IDLE);
      const { status: page } = await guarded.call('get', '/console');
      const api = await guarded.call('get', '/console/api/state').set('Authorization', `Bearer ${ADMIN_TOKEN}`);
      await guarded.stop();
      expect([page, api.status]).toEqual([404, 404]);
    });

    it('in production', () => {
      expect(() => createConsole({ ...OPTIONS, production: true })).toThrow('refuses NODE_ENV=production');
    });
  });

  const REPORT = { method: 'GET', path: '/', status: 401, duration_ms: 1 };
  it.each([
    undefined,
    {},
    [],
    { method: 'GET' },
    { ...REPORT, status: '200' },
    { ...REPORT, method: 'GET; id' },
    { ...REPORT, method: 'get' },
    { ...REPORT, method: '' },
    { ...REPORT, method: 'A'.repeat(21) },
    { ...REPORT, method: 'GET\n' },
    { ...REPORT, path: ['/'] },
    { ...REPORT, body: {} },
    { ...REPORT, decision: 'x' },
    { ...REPORT, decision: null },
    { ...REPORT, decision: { required: 'orders:read' } },
    { ...REPORT, decision: { required: { length: 1 } } },
    { ...REPORT, decision: { required: [1] } },
    { ...REPORT, decision: { required: null } },
    { ...REPORT, decision: { granted: 5 } },
    { ...REPORT, decision: { outcome: 1 } },
    { ...REPORT, decision: { reason: {} } },
    { ...REPORT, decision: { detail: [] } },
    { ...REPORT, decision: { client_id: 7 } },
    { ...REPORT, decision: { token: {} } },
    { ...REPORT, decision: { unverified: 'yes' } },
  ])('takes no report %j', async (body) => {
    const count = async (): Promise<number> =>
      (await dev.call('get', '/console/api/requests?server=api')).body.requests.length as number;
    const before = await count();
    const response = await dev.call('post', '/console/api/requests', body).expect(400);
    expect(response.body).toMatchObject({ code: 'invalid_request', status: 400 });
    expect(await count()).toBe(before);
  });

  it('a reported type is a link only if it is a problem of this API', async () => {
    const server = createConsole(OPTIONS).serve((_req, res) => void res.end());
    const types = [
      'http://127.0.0.1:3000/problems/missing_token',
      'http://127.0.0.1:3000/problems',
      'http://127.0.0.1:3000@evil.example/problems/x',
      'http://127.0.0.1:30000/problems/x',
      'https://evil.example/http://127.0.0.1:3000/problems/x',
      'javascript:alert(1)',
      'about:blank',
    ];
    for (const type of types) {
      await request(server)
        .post('/console/api/requests')
        .send({ ...REPORT, body: JSON.stringify({ type }) })
        .expect(204);
    }
    const { body } = await request(server).get('/console/api/requests');
    const links = (body.requests as { type?: string }[]).map(({ type }) => type).filter(Boolean);
    expect([body.requests.length, links]).toEqual([types.length, [types[0]]]);
  });

  it('keeps a bounded number of requests', async () => {
    const console = createConsole({ ...OPTIONS, capacity: 3 });
    const server = console.serve((_req, res) => void res.end('{}'));
    for (let count = 0; count < 5; count++) await request(server).get(`/clients/till-${count}`).expect(200);
    const { body } = await request(server).get('/console/api/requests').expect(200);
    const paths = body.requests.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(['/clients/till-4', '/clients/till-3', '/clients/till-2']);
    await request(server).get('/console/api/requests/1').expect(404);
    await request(server).delete('/console/api/requests').expect(204);
    expect((await request(server).get('/console/api/requests')).body).toEqual({ requests: [] });
    await console.close();
  });

  it('replays no target that names another host', async () => {
    const call = jest.fn();
    const server = createConsole({ ...OPTIONS, call }).serve((_req, res) => void res.end());
    const report = { method: 'GET', path: '@evil.example/', status: 404, duration_ms: 1 };
    await request(server).post('/console/api/requests').send(report).expect(204);
    await request(server).post('/console/api/requests/1/replay').send({}).expect(409);
    expect(call).not.toHaveBeenCalled();
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
    const handler = console.serve((_req, res) => void res.emit('close'));
    // More than the operating system holds for a connection.
    for (let count = 0; count < 4_000; count++) {
      const req = Object.assign(new IncomingMessage(new Socket()), { url: `/${'a/'.repeat(2_000)}`, method: 'GET' });
      handler(req, new ServerResponse(req));
    }
    expect(connection.destroyed).toBe(true);
    reader.destroy();
    await console.close();
    server.close();
  });
});

const REGISTERED = '2026-03-01T12:00:00.000Z';
const CHANGED_MS = Date.parse(REGISTERED) + 60_000;
const NOW_MS = CHANGED_MS + 5;
const till = {
  ...{ client_id: 'till', description: 'Till', scope: 'orders:read', disabled: false, created_at: REGISTERED },
  ...{ generation: Date.parse(REGISTERED), secrets: [{ id: 's', created_at: REGISTERED }], updated_at: REGISTERED },
};
const described = { ...till, description: 'Front door', generation: CHANGED_MS };

/** The timeline of `till` after requests to the token server, each of which leaves it in one of these states. */
async function timelineAfter(atStart: readonly (typeof till)[], ...states: (typeof till)[]): Promise<unknown> {
  let clients: readonly (typeof till)[] = [];
  const page = createConsole({ ...OPTIONS, clock: () => NOW_MS, clients: () => clients });
  const handler = page.serve((_req, res) => {
    clients = states.splice(0, 1);
    res.end('{}');
  });
  // Without a request: the demo clients of a fresh start.
  clients = atStart;
  while (states.length > 0) await request(handler).patch('/clients/till').send({});
  const { body } = await request(handler).get('/console/api/state');
  await page.close();
  return body.clients[0].timeline;
}

const registered = { generation: till.generation, at: REGISTERED, cause: 'registered' };

it('a client that is changed right after a fresh start was registered when it was, not when it was changed', async () => {
  expect(await timelineAfter([till], described)).toEqual([
    { generation: CHANGED_MS, at: new Date(NOW_MS).toISOString(), cause: 'Description changed' },
    registered,
  ]);
});

it('a client that was changed before the console was opened has both times', async () => {
  expect(await timelineAfter([described])).toEqual([
    { generation: CHANGED_MS, at: new Date(CHANGED_MS).toISOString(), cause: 'changed before the console was opened' },
    registered,
  ]);
});
