import express from 'express';
import request from 'supertest';
import { requestId, requestObserver } from '../../src/app/log';
import type { RequestEvent } from '../../src/app/log';

describe('requestId', () => {
  const app = express();
  app.use(requestId(() => 'made-here'));
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

      expect(response.headers['x-request-id']).toBe('made-here');
      expect(response.body).toEqual({ id: 'made-here' });
    },
  );

  it('generates a new random id for every request by default', async () => {
    const plain = express().use(requestId());
    const [one, two] = [await request(plain).get('/'), await request(plain).get('/')];

    expect(one.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(one.headers['x-request-id']).not.toBe(two.headers['x-request-id']);
  });
});

describe('requestObserver', () => {
  function observed(nowMs: () => number = () => 0) {
    const events: RequestEvent[] = [];
    const observer = requestObserver((event) => events.push(event), nowMs);
    const app = express();
    app.use(
      requestId(() => 'id-1'),
      observer.handler,
    );
    app.get('/refused', (req, res) => {
      observer.refused(req, { reason: 'superseded', detail: 'generation 5 < 7' });
      res.sendStatus(401);
    });
    let held: express.Response | undefined;
    let release = (): void => {};
    const isHeld = new Promise<void>((resolve) => (release = resolve));
    app.get('/held', (req, res) => {
      observer.refused(req, { reason: 'expired' });
      held = res;
      release();
    });
    app.get('/refused/and/release', async (req, res) => {
      await isHeld;
      observer.refused(req, { reason: 'superseded' });
      held?.sendStatus(401);
      held?.once('close', () => res.sendStatus(401));
    });
    app.get('/{*rest}', (_req, res) => void res.json({}));
    return { app, events };
  }

  it('emits one event per request, with its duration', async () => {
    const times = [1000, 1012.345];
    const { app, events } = observed(() => times.shift() ?? NaN);

    await request(app).get('/v1/orders?access_token=geheim');

    expect(events).toEqual([
      {
        method: 'GET',
        path: '/v1/orders',
        status: 200,
        durationMs: 12.3,
        requestId: 'id-1',
        clientId: undefined,
        reason: undefined,
        detail: undefined,
        aborted: false,
      },
    ]);
  });

  it('says why a request was refused', async () => {
    const { app, events } = observed();

    await request(app).get('/refused');

    expect(events).toMatchObject([{ path: '/refused', status: 401, reason: 'superseded', detail: 'generation 5 < 7' }]);
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
