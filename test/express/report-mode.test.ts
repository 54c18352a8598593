import express from 'express';
import type { RequestHandler } from 'express';
import request from 'supertest';
import type { Test } from 'supertest';
import { authenticate, authOf, requireScope } from '../../src';
import type { AuthenticateOptions, Decision } from '../../src';
import { dpop } from '../../src/possession';
import { BASE_URL, boundToken, proof } from '../support/dpop';
import { fakeTime } from '../support/fake-time';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

/** What decides today: it assigns its own `req.auth`. */
const OLD: RequestHandler = (req, res, next) => {
  if (req.headers['x-old'] !== 'yes') return void res.sendStatus(401);
  Object.assign(req, { auth: 'of the old middleware' });
  next();
};

function trial(options: Partial<AuthenticateOptions> = {}) {
  const time = fakeTime(NOW_MS);
  const logger = recordingLogger();
  const decisions: Decision[] = [];
  const gate = authenticate({
    ...{ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), enforce: 'report' },
    ...{ clock: time.clock, schedule: time.schedule, logger },
    onDecision: (decision: Decision) => void decisions.push(decision),
    ...options,
  } as AuthenticateOptions);
  const app = express();
  app.use(gate, OLD);
  app.get('/v1/orders/:id', requireScope('orders:read'), (req, res) => void res.json([req.auth, authOf(req) ?? null]));
  const get = (raw?: string, old = true): Test => {
    const test = request(app)
      .get('/v1/orders/7')
      .set('x-old', old ? 'yes' : 'no');
    return raw === undefined ? test : test.set('Authorization', `Bearer ${raw}`);
  };
  const reports = () => logger.entries.slice(1).map(({ level, fields, message }) => ({ level, message, ...fields }));
  return { gate, app, get, time, logger, decisions, reports };
}

const WEAK = token({ claims: { scope: 'menus:read' } });

describe("enforce: 'report'", () => {
  it('says loudly that it protects nothing', () => {
    expect(trial().logger.entries).toEqual([
      { level: 'warn', fields: {}, message: expect.stringContaining('refuses nothing and protects nothing') as string },
    ]);
  });

  it.each([
    ['no token', undefined],
    ['a bad token', 'x'],
    ['a token without the scope', WEAK],
    ['a good token', token()],
  ])('refuses nothing and grants nothing: %s', async (_what, raw) => {
    const { get } = trial();
    const response = await get(raw);
    // What the old middleware has assigned, and nobody for authOf().
    expect([response.status, response.body]).toEqual([200, ['of the old middleware', null]]);
    expect(response.headers).not.toHaveProperty('www-authenticate');
    expect((await get(raw, false)).status).toBe(401);
  });

  it('reports what it would refuse and the app accepts, once per client and route, then counts', async () => {
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

  it('reports what it would accept and the app refuses', async () => {
    const { get, reports } = trial();
    await get(token(), false);
    expect(reports()).toEqual([
      expect.objectContaining({ reason: 'accepted', status: 200, responded: 401, clientId: 'pos-17' }),
    ]);
  });

  it.each([
    ['expired', { exp: NOW_MS / 1000 - 60 }],
    ['wrong_audience', { aud: 'https://shop.test' }],
  ])('names the client of a token that is refused for its claims: %s', async (reason, claims) => {
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
    const { app, reports, gate } = trial();
    for (let index = 0; index < 150; index++) {
      const name = `till-${index}`;
      const raw = token({ claims: { scope: 'menus:read', client_id: name, sub: name } });
      await request(app)
        .get('/v1/orders/7')
        .set({ 'x-old': 'yes', authorization: `Bearer ${raw}` });
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

  it('gives onDecision one decision for each, with enforced: false', async () => {
    const { get, decisions } = trial();
    await get(token());
    await get('x');
    await get(WEAK);
    expect(decisions.map(({ outcome, reason, enforced }) => [outcome, reason, enforced])).toEqual([
      ['authenticated', undefined, false],
      ['refused', 'malformed_token', false],
      ['authenticated', undefined, false],
      ['refused', 'insufficient_scope', false],
    ]);
  });

  it('verify() rejects nothing and tells nobody', async () => {
    const { gate, decisions } = trial();
    const req = { method: 'GET', url: '/', headers: {}, rawHeaders: [] } as never;
    expect(await gate.verify(req)).toBeUndefined();
    expect(decisions).toEqual([expect.objectContaining({ reason: 'missing_token', enforced: false })]);
    expect(authOf(req)).toBeUndefined();
  });

  it("cannot be combined with unguarded: 'refuse', and has no other values", () => {
    expect(() => trial({ unguarded: 'refuse' })).toThrow(
      'authenticate(): option "enforce" is "report", which refuses nothing: remove "unguarded"',
    );
    expect(() => trial({ enforce: 'off' as 'report' })).toThrow('option "enforce" must be');
  });

  it('uses up no DPoP proof of the gate behind it', async () => {
    const possession = [dpop({ baseUrl: BASE_URL })];
    const { app } = trial({ possession });
    const enforcing = authenticate({
      ...{ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS },
      possession,
    });
    app.get('/behind', enforcing, requireScope('orders:read'), (req, res) => void res.json(req.auth?.clientId));
    const send = (path: string): Test =>
      request(app)
        .get(path)
        .set({ 'x-old': 'yes', authorization: `DPoP ${boundToken()}`, dpop: proof({ url: `${BASE_URL}${path}` }) });
    expect((await send('/behind')).status).toBe(200);
  });
});
