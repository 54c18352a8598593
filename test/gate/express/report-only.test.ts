import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { RequestHandler } from 'express';
import request from 'supertest';
import type { Test } from 'supertest';
import { authOf, endWithToken, reportOnly, requireAuthenticated, requireClaim, requireScope } from '../../../src/gate';
import type { AuthenticateOptions, Decision } from '../../../src/gate';
import { dpop } from '../../../src/gate/possession';
import type { ReplayStore } from '../../../src/gate/possession';
import { BASE_URL, boundToken, proof } from '../../support/dpop';
import { fakeTime } from '../../support/fake-time';
import { getFrom, testGate } from '../../support/gate-app';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../../support/issuer';
import { eventually } from '../../support/key-server';
import { jwks, newKey, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';

/** What decides today: it assigns its own `req.auth`. */
const OLD: RequestHandler = (req, res, next) => {
  if (req.headers['x-old'] !== 'yes') return void res.sendStatus(401);
  Object.assign(req, { auth: 'of the old middleware' });
  next();
};

function gateWith(options: Partial<AuthenticateOptions> = {}) {
  const time = fakeTime(NOW_MS);
  const logger = recordingLogger();
  const decisions: Decision[] = [];
  const onDecision = (decision: Decision): void => void decisions.push(decision);
  const gate = testGate({ clock: time.clock, schedule: time.schedule, logger, onDecision, ...options });
  const reports = () =>
    logger.entries
      .filter(({ fields }) => 'responded' in fields)
      .map(({ level, fields, message }) => ({ level, message, ...fields }));
  return { gate, time, logger, decisions, reports };
}

function trial(options: Partial<AuthenticateOptions> = {}, guard = requireScope('orders:read')) {
  const scene = gateWith(options);
  const app = express();
  app.use(reportOnly(scene.gate), OLD);
  app.get('/v1/orders/:id', reportOnly(guard), (req, res) => void res.json([req.auth, authOf(req) ?? null]));
  const get = (raw?: string, old = true): Test => getFrom(app, raw, '/v1/orders/7').set('x-old', old ? 'yes' : 'no');
  return { ...scene, app, get };
}

const WEAK = token({ claims: { scope: 'menus:read' } });

describe('reportOnly()', () => {
  it('says loudly that a gate protects nothing', () => {
    expect(trial().logger.entries).toEqual([
      { level: 'warn', fields: {}, message: expect.stringContaining('refuses nothing and protects nothing') as string },
    ]);
  });

  it.each([
    ['no token', undefined],
    ['a bad token', 'x'],
    ['a token without the scope', WEAK],
    ['a good token', token()],
  ])('refuses nothing, grants nothing and tells no observer: %s', async (_what, raw) => {
    const { get, decisions } = trial();
    const response = await get(raw);
    // What the old middleware has assigned, and nobody for authOf().
    expect([response.status, response.body]).toEqual([200, ['of the old middleware', null]]);
    expect(response.headers).not.toHaveProperty('www-authenticate');
    expect((await get(raw, false)).status).toBe(401);
    expect(decisions).toEqual([]);
  });

  it('reports what would be refused and the app accepts, once per client and route, then counts', async () => {
    const { get, time, reports, gate } = trial();
    for (let turn = 0; turn < 3; turn++) await get(WEAK);
    expect(reports()).toEqual([
      {
        ...{ level: 'warn', message: 'request differently decided', reason: 'insufficient_scope', status: 403 },
        ...{ responded: 200, issuer: ISSUER, clientId: 'pos-17', method: 'GET', path: 'GET /v1/orders/:id', count: 1 },
        detail: 'needs orders:read, has menus:read',
        advice: 'Grant the client the scope at the authorization server, if it should have it.',
      },
    ]);
    await time.advance(60_000);
    expect(reports().slice(1)).toEqual([
      expect.objectContaining({ message: '2 more requests differently decided: insufficient_scope', count: 2 }),
    ]);
    await gate.close();
  });

  it('writes one line per reason and client for paths that no route declares, and none for a 404 without a token', async () => {
    const { logger, reports, gate } = gateWith({});
    const app = express().use(reportOnly(gate));
    app.get('/found/:id', (_req, res) => void res.json('ok')).use('/files', (_req, res) => void res.json('ok'));
    for (let number = 0; number < 60; number++) await getFrom(app, undefined, `/unknown/${number}`).expect(404);
    await getFrom(app, undefined, '/found/1').expect(200);
    for (let number = 0; number < 60; number++) {
      await getFrom(app, undefined, `/files/${number}`).expect(200);
      await getFrom(app, token({ claims: { exp: 1 } }), `/unknown/${number}`).expect(404);
    }
    const named = (reports() as readonly Record<string, unknown>[]).map((line) => [
      line['reason'],
      line['clientId'],
      line['path'],
    ]);
    expect(named).toEqual([
      ['missing_token', undefined, 'GET /found/:id'],
      ['missing_token', undefined, 'unmatched'],
      ['expired', 'pos-17', 'unmatched'],
    ]);
    expect(logger.at('error')).toEqual([]);
  });

  it('counts a route with prefixes that callers choose by its own path', async () => {
    const { reports, gate } = gateWith({});
    const shops = express.Router().get('/orders', (_req, res) => void res.json('ok'));
    const app = express().use(reportOnly(gate)).use('/shops/:shop', shops);
    for (let shop = 0; shop < 60; shop++) await getFrom(app, undefined, `/shops/${shop}/orders`).expect(200);
    expect(reports().map((line) => (line as Record<string, unknown>)['path'])).toEqual([
      ...Array.from({ length: 40 }, (_, shop) => `GET /shops/${shop}/orders`),
      '*/orders',
    ]);
  });

  it('reports what would be accepted and the app refuses', async () => {
    const { get, reports } = trial();
    await get(token(), false);
    expect(reports()).toEqual([
      expect.objectContaining({ reason: 'accepted', status: 200, responded: 401, clientId: 'pos-17' }),
    ]);
  });

  it.each([
    ['expired', { exp: NOW_MS / 1000 - 60 }],
    ['wrong_audience', { aud: 'https://shop.test' }],
  ])('names the client of a token that would be refused for its claims: %s', async (reason, claims) => {
    const { get, reports } = trial();
    await get(token({ claims }));
    await get(token({ claims, key: newKey('ES256', testKey().kid) }));
    expect(reports()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ reason, issuer: ISSUER, clientId: 'pos-17' }),
        expect.objectContaining({ reason: 'bad_signature', issuer: undefined, clientId: undefined }),
      ]),
    );
  });

  it('reports nothing where both agree', async () => {
    const { get, reports } = trial();
    await get(token());
    await get(undefined, false);
    await get('x', false);
    expect(reports()).toEqual([]);
  });

  it('reports more clients one by one than a log of refusals does', async () => {
    const { get, reports, gate } = trial();
    for (let index = 0; index < 150; index++) {
      const name = `till-${index}`;
      await get(token({ claims: { scope: 'menus:read', client_id: name, sub: name } }));
    }
    expect(new Set(reports().map((one) => (one as { clientId?: string }).clientId)).size).toBe(150);
    await gate.close();
  });

  it('says every ten minutes which scopes a client holds and has not needed, where that has changed', async () => {
    const { get, time, logger, gate } = trial();
    const unused = () => logger.entries.filter(({ level }) => level === 'info').map(({ fields }) => fields);
    await get(token({ claims: { scope: 'menus:read orders:read orders:write' } }));
    await time.advance(600_000);
    expect(unused()).toEqual([{ clientId: 'pos-17', unused: ['menus:read', 'orders:write'] }]);
    await get(token({ claims: { scope: 'menus:read' } }));
    await time.advance(600_000);
    await gate.close();
    await get(token());
    expect([unused().length, time.pending]).toEqual([1, 0]);
  });

  it('has the close() of its gate', async () => {
    const { gate, time } = gateWith();
    const tried = reportOnly(gate);
    const app = express().use(tried, (_req, res) => void res.end());
    await request(app).get('/');
    expect(time.pending).toBe(1);
    await tried.close();
    expect(time.pending).toBe(0);
  });

  it.each([
    ['nothing', undefined],
    ['a handler', OLD],
    ['endWithToken()', endWithToken()],
    ['a trial', reportOnly(requireAuthenticated())],
    ['options', { issuer: ISSUER }],
  ])('refuses %s', (_what, given) => {
    expect(() => reportOnly(given as never)).toThrow(
      'reportOnly(): expected what authenticate() returned, or a guard such as requireScope(), got ',
    );
  });

  it('is not a middleware itself', async () => {
    const app = express().use(reportOnly as never);
    expect((await request(app).get('/')).text).toContain('reportOnly is registered as a middleware');
  });
});

describe('a gate on trial', () => {
  it('does not wait for its issuer for long, and compares when it has decided', async () => {
    let respond: (response: Response) => void = () => undefined;
    const fetch = () => new Promise<Response>((resolve) => (respond = resolve));
    const { get, reports, gate, time } = trial({ keys: undefined, jwksUri: `${ISSUER}/jwks`, fetch });
    const response = get(WEAK).then(({ status }) => status);
    await eventually(() => time.pending > 1);
    await time.advance(100);
    expect([await response, reports()]).toEqual([200, []]);
    respond(new Response(JSON.stringify(jwks(testKey()))));
    await eventually(() => reports().length > 0);
    expect(reports()).toEqual([expect.objectContaining({ reason: 'insufficient_scope', responded: 200 })]);
    await gate.close();
  });

  it('writes to no replay store, before or after the gate that decides', async () => {
    const remembered: string[] = [];
    const replayStore: ReplayStore = {
      remember(id) {
        remembered.push(id);
        return remembered.filter((one) => one === id).length === 1;
      },
    };
    const options = { possession: [dpop({ baseUrl: BASE_URL, replayStore })], possessionRequired: true };
    const [tried, enforcing] = [gateWith(options), gateWith(options)];
    const app = express();
    app.use(reportOnly(tried.gate), enforcing.gate, reportOnly(tried.gate), reportOnly(enforcing.gate));
    app.get('/orders', requireScope('orders:read'), (_req, res) => void res.end());
    const send = (jti: string): Test => {
      const dpop = proof({ url: `${BASE_URL}/orders`, claims: { jti } });
      return request(app)
        .get('/orders')
        .set({ authorization: `DPoP ${boundToken()}`, dpop });
    };
    expect([(await send('a')).status, (await send('b')).status, remembered.length]).toEqual([200, 200, 2]);
    expect(tried.reports()).toEqual([]);
    // Only the gate that decides knows that the proof was used before.
    expect((await send('a')).status).toBe(401);
    expect(tried.reports()).toEqual([expect.objectContaining({ reason: 'accepted', responded: 401 })]);
  });

  it('leaves an upgrade and verify() of another gate alone', async () => {
    const tried = reportOnly(gateWith({ audience: 'https://other.test' }).gate);
    const { gate } = gateWith();
    const requestOf = (headers: object) => ({ method: 'GET', url: '/', headers, rawHeaders: [] }) as never;
    const req = requestOf({ authorization: `Bearer ${token()}` });
    const res = { once() {} } as never;
    tried(req, res, () => undefined);
    const auth = await gate.verify(req);
    tried(req, res, () => undefined);
    expect([auth?.clientId, authOf(req)]).toEqual(['pos-17', auth]);
    const refused = requestOf({});
    reportOnly(gateWith({ optional: true }).gate)(refused, res, () => undefined);
    await expect(gate.verify(refused)).rejects.toMatchObject({ reason: 'missing_token' });
  });

  it('adds one listener to a response, however many trials there are', async () => {
    const app = express();
    for (let index = 0; index < 20; index++) app.use(reportOnly(gateWith().gate), reportOnly(requireScope('a')));
    app.use((_req, res) => void res.json(res.listenerCount('finish')));
    const plain = express().use((_req, res) => void res.json(res.listenerCount('finish')));
    expect((await request(app).get('/')).body).toBe((await request(plain).get('/')).body + 1);
  });

  it('survives a logger that throws, and a key set that breaks', async () => {
    const logger = recordingLogger();
    const keys = jwks(testKey());
    const { get } = trial({ keys, logger });
    Object.assign(logger, {
      warn() {
        throw new Error('disk full');
      },
    });
    expect((await get(WEAK)).status).toBe(200);
    Object.assign(keys, { keys: 'broken' });
    expect((await get(token())).status).toBe(200);
    expect(new Set(logger.at('error').map(({ message }) => message))).toEqual(
      new Set(['a trial could not be decided']),
    );
  });
});

describe('a guard on trial', () => {
  /** Enforcing and tried gates and guards in the order of their names, and what was reported by whom. */
  function sceneOf(
    mount: (app: express.Express, gates: Record<'enforcing' | 'tried', ReturnType<typeof gateWith>>) => void,
  ) {
    const gates = { enforcing: gateWith(), tried: gateWith({ audience: 'https://other.test' }) };
    const app = express();
    mount(app, gates);
    app.use((_req, res) => void res.json({}));
    const get = (raw: string): Test => getFrom(app, raw, '/orders/7');
    const reasons = () => Object.values(gates).map(({ reports }) => reports().map((one) => (one as never)['reason']));
    return { get, reasons };
  }

  it('asks the gate that decides, where that is the nearest one', async () => {
    const { get, reasons } = sceneOf((app, { enforcing, tried }) =>
      app.use(reportOnly(tried.gate), enforcing.gate, reportOnly(requireScope('orders:delete'))),
    );
    expect((await get(token())).status).toBe(200);
    expect(reasons()).toEqual([['insufficient_scope'], ['wrong_audience']]);
  });

  it('asks the gate on trial, where that is the nearest one: it adds nothing to what that would refuse', async () => {
    const { get, reasons } = sceneOf((app, { enforcing, tried }) =>
      app.use(enforcing.gate, reportOnly(tried.gate), reportOnly(requireScope('orders:delete'))),
    );
    await get(token());
    expect(reasons()).toEqual([[], ['wrong_audience']]);
    await get(token({ claims: { aud: [AUDIENCE, 'https://other.test'] } }));
    expect(reasons()).toEqual([[], ['wrong_audience', 'insufficient_scope']]);
  });

  it('tests a claim with the request as it is there, and does not wait for the result', async () => {
    let finish: (result: boolean) => void = () => undefined;
    const seen: unknown[] = [];
    const guard = requireClaim('store', (_store, req: express.Request) => {
      seen.push({ ...req.params });
      return new Promise<boolean>((resolve) => (finish = resolve));
    });
    const { get, reasons } = sceneOf((app, { tried }) => {
      app.use(reportOnly(tried.gate));
      app.use('/orders/:id', reportOnly(guard));
    });
    await get(token({ claims: { aud: 'https://other.test' } }));
    expect([seen, reasons()]).toEqual([[{ id: '7' }], [[], []]]);
    finish(false);
    await new Promise(setImmediate);
    expect(reasons()).toEqual([[], ['claim_refused']]);
  });

  it('says once that no gate is before it', async () => {
    const lines: string[] = [];
    const console = jest.spyOn(global.console, 'warn').mockImplementation((line: string) => void lines.push(line));
    const app = express().use(reportOnly(requireScope('a')), (_req, res) => void res.end());
    for (let turn = 0; turn < 2; turn++) expect((await request(app).get('/')).status).toBe(200);
    console.mockRestore();
    expect(lines).toEqual([
      'tillgate: reportOnly(requireScope()) has no gate: mount authenticate(), or reportOnly(authenticate()), before it {"route":"GET /"}',
    ]);
  });

  it('counts as no guard for the catch of unguarded responses', async () => {
    const { gate } = gateWith({ unguarded: 'refuse' });
    const app = express().use(gate, reportOnly(requireAuthenticated()), (_req, res) => void res.end('secret'));
    expect((await getFrom(app, token())).status).toBe(500);
  });

  it('works over HTTP without Express', async () => {
    const { gate, reports } = gateWith();
    const [tried, guard] = [reportOnly(gate), reportOnly(requireScope('orders:delete'))];
    const server = createServer((req, res) => tried(req, res, () => guard(req, res, () => res.end())));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${token()}` } });
    expect([response.status, reports()]).toEqual([200, [expect.objectContaining({ reason: 'insufficient_scope' })]]);
    server.close().closeAllConnections();
  });
});
