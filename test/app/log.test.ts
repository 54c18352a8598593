import { once } from 'node:events';
import { get } from 'node:http';
import type { RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import request from 'supertest';
import { createLog, logRequests, noteRefusal, requestId } from '../../src/app/log';
import { startServer } from '../../src/app/server';
import type { RunningServer } from '../../src/app/server';
import { exchange } from '../gate/hostile/support/wire';
import { problemsOf } from '../gate/env/problems-of';
import { appScene, issuer } from './app-scene';

/** A log in memory, and its lines as objects. */
function memoryLog() {
  const events: Record<string, unknown>[] = [];
  const log = createLog('info', { write: (line) => void events.push(JSON.parse(line) as Record<string, unknown>) });
  return { log, events };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe('requestId', () => {
  const app = express();
  app.use(requestId);
  app.get('/', (req, res) => void res.json({ id: req.id }));

  it.each(['a', '0f8fad5b-d9cb-469f-a165-70867728950e', 'A.b_c-9', 'x'.repeat(64)])(
    'accepts the id %s of the caller',
    async (id) => {
      const response = await request(app).get('/').set('X-Request-Id', id);
      expect(response.headers['x-request-id']).toBe(id);
      expect(response.body).toEqual({ id });
    },
  );

  it.each(['', 'a b', 'a"b', '<script>', 'ä', 'x'.repeat(65), 'a,b', 'eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJFUzI1NiJ9'])(
    'generates an id instead of %j',
    async (id) => {
      const response = await request(app).get('/').set('X-Request-Id', Buffer.from(id, 'latin1').toString('latin1'));
      expect(response.headers['x-request-id']).toMatch(UUID);
      expect(response.body).toEqual({ id: response.headers['x-request-id'] });
    },
  );

  it('generates a new random id for every request by default', async () => {
    const [one, two] = [await request(app).get('/'), await request(app).get('/')];
    expect(one.headers['x-request-id']).not.toBe(two.headers['x-request-id']);
  });
});

describe('logRequests', () => {
  function observed() {
    const { log, events } = memoryLog();
    const app = express();
    app.use(requestId, logRequests(log));
    app.get('/refused', (req, res) => {
      noteRefusal(req, 'superseded', 'generation 5 < 7');
      res.sendStatus(401);
    });
    let held: express.Response | undefined;
    let release = (): void => {};
    const isHeld = new Promise<void>((resolve) => (release = resolve));
    app.get('/held', (req, res) => {
      noteRefusal(req, 'expired');
      held = res;
      release();
    });
    app.get('/refused/and/release', async (req, res) => {
      await isHeld;
      noteRefusal(req, 'superseded');
      held?.sendStatus(401);
      held?.once('close', () => res.sendStatus(401));
    });
    app.get('/{*rest}', (_req, res) => void res.json({}));
    return { app, events };
  }

  it('logs one line per request, with its duration', async () => {
    const { app, events } = observed();

    await request(app).get('/v1/orders?access_token=geheim').set('X-Request-Id', 'id-1');

    expect(events).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        method: 'GET',
        path: '/v1/orders',
        status: 200,
        duration_ms: expect.any(Number),
        request_id: 'id-1',
        msg: 'request',
      },
    ]);
  });

  it('says why a request was refused', async () => {
    const { app, events } = observed();
    await request(app).get('/refused');
    expect(events).toMatchObject([{ path: '/refused', status: 401, reason: 'superseded', detail: 'generation 5 < 7' }]);
  });

  it('says that a client hung up before its response was complete', async () => {
    const { app, events } = observed();
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const sent = get({ port: (server.address() as AddressInfo).port, path: '/held' }).on('error', () => {});
    const [, res] = (await once(server, 'request')) as [unknown, ServerResponse];
    sent.destroy();
    await once(res, 'close');
    await new Promise((resolve) => server.close(resolve));
    expect(events).toMatchObject([{ path: '/held', aborted: true }]);
  });

  it('removes a token from the path', async () => {
    const { app, events } = observed();
    await request(app).get('/v1/orders/eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl/x');
    expect(events).toMatchObject([{ path: '/v1/orders/[token]/x' }]);
  });

  it('keeps overlapping requests with the same id apart', async () => {
    const { app, events } = observed();
    // The first request is still open when the second one gets its response.
    const first = request(app).get('/held').then();
    await request(app).get('/refused/and/release');
    await first;
    expect(events.map(({ path, reason }) => [path, reason])).toEqual([
      ['/held', 'expired'],
      ['/refused/and/release', 'superseded'],
    ]);
  });
});

const HEAD = 'POST / HTTP/1.1\r\nHost: api.test\r\n';

describe('requests that cannot be read', () => {
  let server: RunningServer;
  let names: readonly string[] = [];
  const { log, events: reported } = memoryLog();
  const statusesOf: number[] = [];
  const listener: RequestListener = (req, res) => {
    names = req.rawHeaders.filter((_name, index) => index % 2 === 0);
    res.once('close', () => statusesOf.push(res.statusCode));
    if (req.url === '/reading') req.resume().once('end', () => res.end('read'));
    else res.end('done');
  };
  beforeAll(async () => {
    server = await startServer(listener, { host: '127.0.0.1', port: 0, baseUrl: 'https://api.test', log });
  });
  afterAll(() => server.close());
  beforeEach(() => void (reported.length = statusesOf.length = 0));

  const send = async (text: string) => {
    const { responses, closed } = await exchange(server.port, Buffer.from(text, 'latin1'));
    return { statuses: responses.map(({ status }) => status), closed };
  };

  it.each([
    ['not a request line', 'hello\r\n\r\n', 400, 'invalid_request', 'HPE_INVALID_METHOD'],
    ['a NUL in a header', `${HEAD}X: \0\r\n\r\n`, 400, 'invalid_request', 'HPE_INVALID_HEADER_TOKEN'],
    [
      'a head beyond 16 kB',
      `${HEAD}X: ${'x'.repeat(17_000)}\r\n\r\n`,
      431,
      'request_header_fields_too_large',
      'HPE_HEADER_OVERFLOW',
    ],
  ])('refuses %s with a problem body, closes, and logs only the code', async (_what, text, status, code, why) => {
    const { responses, malformed, closed } = await exchange(server.port, Buffer.from(text, 'latin1'));
    expect({ malformed, closed, statuses: responses.map((response) => response.status) }).toEqual({
      closed: true,
      statuses: [status],
    });
    const { headers, body } = responses[0]!;
    expect(headers.get('content-type')).toEqual(['application/problem+json; charset=utf-8']);
    expect(headers.get('cache-control')).toEqual(['no-store']);
    expect(headers.get('connection')).toEqual(['close']);
    expect(JSON.parse(body)).toEqual({
      type: `https://api.test/problems/${code}`,
      title: { 400: 'Bad Request', 431: 'Request Header Fields Too Large' }[status],
      status,
      detail: expect.any(String),
      code,
    });
    expect(reported).toEqual([
      { level: 'info', time: expect.any(String), status, reason: 'unreadable', detail: why, msg: 'request' },
    ]);
  });

  it('sends no second response when a body is invalid after the first one', async () => {
    const broken = `${HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n`;
    expect(await send(broken)).toEqual({ statuses: [200], closed: true });
    expect(reported).toEqual([]);
  });

  it('does not report an invalid body that a handler is reading: its response has the status', async () => {
    const broken = `${HEAD.replace('/', '/reading')}Transfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n`;
    expect(await send(broken)).toEqual({ statuses: [400], closed: true });
    expect([reported, statusesOf]).toEqual([[], [400]]);
  });

  it('ignores bytes after the last request of a connection', async () => {
    expect(await send(`${HEAD}Connection: close\r\n\r\nhello\r\n\r\n`)).toEqual({ statuses: [200], closed: true });
    expect(reported).toEqual([]);
  });

  it('refuses an unreadable request after a good one on the same connection', async () => {
    expect(await send(`${HEAD}\r\nhello\r\n\r\n`)).toEqual({ statuses: [200, 400], closed: true });
    expect(reported).toMatchObject([{ status: 400, reason: 'unreadable', detail: 'HPE_INVALID_METHOD' }]);
  });

  it('passes every header to the app, however many there are', async () => {
    await send(`${HEAD}${'a:b\r\n'.repeat(2_500)}Last: x\r\nConnection: close\r\n\r\n`);
    expect(names).toHaveLength(2_503);
  });
});

describe('CORS', () => {
  const SHOP = 'https://shop.test';
  const token = issuer.token({ scope: 'orders:read' });
  const { app } = appScene({ TILLGATE_CORS_ORIGINS: SHOP });

  const preflight = (origin: string) =>
    request(app).options('/v1/orders').set({
      Origin: origin,
      'Access-Control-Request-Method': 'GET',
      'Access-Control-Request-Headers': 'authorization',
    });

  describe('TILLGATE_CORS_ORIGINS', () => {
    it('lets pages of these origins send requests with a token, and read the headers of a refusal', async () => {
      const { status, headers } = await preflight(SHOP);
      expect([status, headers['access-control-allow-origin']]).toEqual([204, SHOP]);
      expect(headers['access-control-allow-headers']).toBe('authorization');
      expect(headers).not.toHaveProperty('access-control-allow-credentials');
      for (const authorization of [`Bearer ${token}`, 'Bearer x']) {
        const response = await request(app).get('/v1/orders').set({ authorization, origin: SHOP });
        expect(response.status).toBe(authorization.endsWith('x') ? 401 : 200);
        expect(response.headers['access-control-allow-origin']).toBe(SHOP);
        expect(response.headers['access-control-expose-headers']).toBe(
          'WWW-Authenticate,DPoP-Nonce,Retry-After,RateLimit,RateLimit-Policy,X-Request-Id',
        );
        expect(response.headers['vary']).toContain('Origin');
      }
    });

    it('lets no page of another origin', async () => {
      expect((await preflight('https://evil.test')).headers).not.toHaveProperty('access-control-allow-origin');
      const response = await request(app)
        .get('/v1/orders')
        .set({ authorization: `Bearer ${token}`, origin: 'null' });
      expect(response.headers).not.toHaveProperty('access-control-allow-origin');
    });

    it('is off unless it is set: a preflight gets no permission and no data', async () => {
      const { app: closed } = appScene();
      const response = await request(closed)
        .options('/v1/orders')
        .set({ Origin: SHOP, 'Access-Control-Request-Method': 'GET' });
      expect(response.headers).not.toHaveProperty('access-control-allow-origin');
    });

    it.each(['*', 'shop.test', 'https://shop.test/', 'https://shop.test/page', 'https://SHOP.test', ' ', 'null'])(
      'refuses %j, which is no origin',
      (given) => {
        expect(problemsOf({ TILLGATE_CORS_ORIGINS: given })).toEqual([
          expect.stringContaining('expected origins such as https://shop.example.com, without a path'),
        ]);
      },
    );
  });
});
