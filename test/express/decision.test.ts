import express from 'express';
import type { RequestHandler } from 'express';
import request from 'supertest';
import { problemHandler } from '../../src';
import type { AuthenticateOptions } from '../../src';
import { gateApp } from '../support/gate-app';
import type { GateAppOptions } from '../support/gate-app';
import { token } from '../support/issuer';
import { recordingLogger } from '../support/log';

/** Gives every request this id, then a gate decides. */
async function decisionOf(id: unknown, raw: string | undefined, options: Partial<AuthenticateOptions> = {}) {
  const { gate, decisions, log } = gateApp(options);
  const identify: RequestHandler = (req, _res, next) => {
    Object.assign(req, { id });
    next();
  };
  const app = express().use(identify, gate, (_req, res) => void res.json('ok'));
  const sent = request(app).get('/orders?limit=1');
  await (raw === undefined ? sent : sent.set('Authorization', `Bearer ${raw}`));
  return { decisions, log };
}

describe('what onDecision gets', () => {
  const facts = { method: 'GET', path: '/orders', requestId: 'req-17' };

  it('for an accepted token: who calls', async () => {
    const { decisions } = await decisionOf('req-17', token());
    expect(decisions).toEqual([
      { outcome: 'authenticated', auth: expect.objectContaining({ clientId: 'pos-17' }), ...facts },
    ]);
  });

  it('for a request without a token, where that is accepted', async () => {
    const { decisions } = await decisionOf('req-17', undefined, { optional: true });
    expect(decisions).toEqual([{ outcome: 'anonymous', ...facts }]);
  });

  it('for a refusal: why, and with which status', async () => {
    const { decisions, log } = await decisionOf('req-17', token({ claims: { client_id: '' } }));
    const [error] = decisions.map((decision) => decision.error);
    expect(decisions).toEqual([{ outcome: 'refused', reason: 'invalid_claims', status: 401, error, ...facts }]);
    const fields = { reason: 'invalid_claims', status: 401, ...facts, detail: 'the client id is empty' };
    expect(log.entries).toEqual([{ level: 'info', fields, message: 'request refused' }]);
  });

  it('for a refusal by a guard: who calls, too', async () => {
    const through = gateApp();
    await through.get(token({ claims: { scope: '' } })).expect(403);
    const { outcome, reason, auth } = through.decisions.at(-1)!;
    expect([outcome, reason, auth?.clientId]).toEqual(['refused', 'insufficient_scope', 'pos-17']);
    expect(through.log.at('info').at(-1)?.fields['clientId']).toBe('pos-17');
  });

  it.each([
    [17, '17'],
    ['', ''],
    [{ a: 1 }, undefined],
    [undefined, undefined],
  ])('names the id %j of a request as %j', async (id, requestId) => {
    const { decisions } = await decisionOf(id, token());
    expect(Object.entries(decisions[0]!).filter(([name]) => name === 'requestId')).toEqual(
      requestId === undefined ? [] : [['requestId', requestId]],
    );
  });

  it('takes no id from the prototype of a request', async () => {
    const { gate, decisions } = gateApp();
    const inherit: RequestHandler = (req, _res, next) => {
      Object.setPrototypeOf(
        req,
        Object.assign(Object.create(Object.getPrototypeOf(req) as object) as object, { id: 'x' }),
      );
      next();
    };
    const app = express().use(inherit, gate, (_req, res) => void res.json('ok'));
    await request(app).get('/').set('Authorization', `Bearer ${token()}`).expect(200);
    expect(decisions[0]).not.toHaveProperty('requestId');
  });
});

it('a gate without an observer logs refusals and nothing else', async () => {
  const through = gateApp({ onDecision: undefined });
  await through.get(token()).expect(200);
  await through.get().expect(401);
  expect(through.log.entries).toMatchObject([{ level: 'info', message: 'request refused' }]);
});

it.each<[string, GateAppOptions['onDecision']]>([
  [
    'throws',
    () => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- an observer may throw anything
      throw 'down';
    },
  ],
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- and reject with anything
  ['rejects with', () => Promise.reject('down')],
])('an onDecision that %s something else than an Error is logged, without it', async (_how, onDecision) => {
  const through = gateApp({ onDecision });
  await through.get(token()).expect(200);
  expect(through.log.at('error')).toEqual([
    { level: 'error', fields: { error: 'not an Error' }, message: 'onDecision failed' },
  ]);
});

describe('the route in messages to developers', () => {
  const handler: RequestHandler = (_req, res) => void res.json('ok');

  it.each<[string, (app: express.Express) => unknown, string, string]>([
    [
      'of a router',
      (app) => app.use('/v1', express.Router().get('/orders/:id', handler)),
      '/v1/orders/7?x=1',
      '/v1/orders/:id',
    ],
    ['that is a regular expression', (app) => app.get(/^\/v1\/ord/, handler), '/v1/orders?x=1', '/v1/orders'],
    ['without a declaration', (app) => app.use('/v1', handler), '/v1/orders?x=1', '/v1/orders'],
  ])('is as it was declared, or the path: %s', async (_what, routes, path, named) => {
    const through = gateApp({ routes });
    await through.get(token(), path).expect(200);
    expect(through.log.at('warn').map(({ fields }) => fields)).toEqual([{ route: `GET ${named}` }]);
  });

  it('goes into the log of problemHandler() with what was thrown', async () => {
    const log = recordingLogger();
    const app = express().get('/v1/:id', () => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- apps throw anything
      throw 'a text';
    });
    await request(app.use(problemHandler({ logger: log })))
      .get('/v1/7')
      .expect(500);
    const fields = { route: 'GET /v1/:id', requestId: undefined, error: 'a text' };
    expect(log.entries).toEqual([{ level: 'error', fields, message: 'unexpected error' }]);
  });
});
