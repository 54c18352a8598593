import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import express from 'express';
import type { RequestHandler } from 'express';
import { authenticate, problemHandler, requireClaim } from '../../../src/gate/index';
import type { AuthenticateOptions, Gate } from '../../../src/gate/index';
import type { GateRequest } from '../../../src/gate/express/request-state';
import { createAuthServer } from '../../../src/cli/auth-server/index';
import { gateApp, getFrom, testGate } from '../../support/gate-app';
import { token, AUDIENCE, ISSUER } from '../../support/issuer';
import { recordingLogger } from '../../support/log';
import { jwks, testKey } from '../../support/keys';

const ok: RequestHandler = (_req, res) => void res.json('ok');

describe('what onDecision gets', () => {
  const client = { issuer: ISSUER, clientId: 'pos-17' };
  const facts = { method: 'GET', path: '/orders', requestId: 'req-17' };

  /** Gives a request this id, then a gate decides. */
  async function decisionOf(id: unknown, raw: string | undefined, options: Partial<AuthenticateOptions> = {}) {
    const { gate, decisions, log } = gateApp(options);
    const identify: RequestHandler = (req, _res, next) => {
      Object.assign(req, { id });
      next();
    };
    await getFrom(express().use(identify, gate, ok), raw, '/orders?limit=1');
    return { decisions, log };
  }

  it('for an accepted token: who calls', async () => {
    const { decisions } = await decisionOf('req-17', token());
    expect(decisions).toEqual([
      { outcome: 'authenticated', auth: expect.objectContaining(client), ...client, ...facts },
    ]);
  });

  it('is what subscribers of the channel tillgate:decision get, with its time; the request is not enumerable', async () => {
    const published: unknown[] = [];
    const subscriber = (message: unknown): void => void published.push(message);
    subscribe('tillgate:decision', subscriber);
    const raw = token();
    const { decisions } = await decisionOf('req-17', raw);
    unsubscribe('tillgate:decision', subscriber);
    expect(published).toHaveLength(1);
    expect(published[0]).toBe(decisions[0]);
    expect(decisions[0]).toMatchObject({ outcome: 'authenticated', cache: 'miss', durationMs: expect.any(Number) });
    expect(decisions[0]?.request.headers.authorization).toBe(`Bearer ${raw}`);
    expect(JSON.stringify(published)).not.toContain(raw.slice(-40));
  });

  it('for a request without a token, where that is accepted', async () => {
    const { decisions } = await decisionOf('req-17', undefined, { optional: true });
    expect(decisions).toEqual([{ outcome: 'anonymous', ...facts }]);
  });

  it('for a refusal: why, and with which status, as in the log', async () => {
    const { decisions, log } = await decisionOf('req-17', token({ claims: { client_id: '' } }));
    const [error] = decisions.map((decision) => decision.error);
    const refusal = { reason: 'invalid_claims', status: 401, issuer: ISSUER, clientId: '', ...facts };
    expect(decisions).toEqual([{ outcome: 'refused', error, ...refusal }]);
    const fields = { ...refusal, detail: 'the client id is empty' };
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
    [17, { requestId: '17' }],
    ['', { requestId: '' }],
    [{ a: 1 }, {}],
    [undefined, {}],
  ])('for a request with the id %j: %j', async (id, named) => {
    const { decisions } = await decisionOf(id, token());
    const { requestId: _id, ...others } = facts;
    expect(decisions[0]).toEqual({ outcome: 'authenticated', auth: expect.anything(), ...client, ...others, ...named });
  });

  it('has no id that is in the prototype of a request', async () => {
    const { gate, decisions } = gateApp();
    const inherit: RequestHandler = (req, _res, next) => {
      const prototype = Object.create(Object.getPrototypeOf(req) as object) as object;
      Object.setPrototypeOf(req, Object.assign(prototype, { id: 'x' }));
      next();
    };
    await getFrom(express().use(inherit, gate, ok), token()).expect(200);
    expect(decisions[0]).not.toHaveProperty('requestId');
  });

  it('is given to nobody without an observer: refusals are logged, and nothing else', async () => {
    const through = gateApp({ onDecision: undefined });
    await through.get(token()).expect(200);
    await through.get().expect(401);
    expect(through.log.entries).toMatchObject([{ level: 'info', message: 'request refused' }]);
  });

  /** A bug that was: the path went into log and `onDecision` as it came, with a token that somebody had put there. */
  it('has no token that a caller has put into the path, nor has the log', async () => {
    const misplaced = token({ claims: { scope: '' } });
    const through = gateApp();

    await through.get(undefined, `/v1/orders/${misplaced}`).expect(401);
    await through.get(misplaced, `/v1/orders/${misplaced}`).expect(404);
    await through.get(misplaced, `/v1/orders?token=${misplaced}`).expect(403);

    const paths = through.decisions.map(({ path }) => path);
    const masked = expect.stringMatching(/^\/v1\/orders\/\[\d+\]$/) as string;
    expect(paths).toEqual([masked, masked, '/v1/orders', '/v1/orders']);
    const told = JSON.stringify([through.log.entries, paths]);
    for (const part of misplaced.split('.')) expect(told).not.toContain(part);
  });
});

describe('an onDecision that fails', () => {
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- and reject with anything
  const rejectWith = (reason: unknown) => () => Promise.reject(reason);
  const throwText = (): void => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- an observer may throw anything
    throw 'down';
  };

  it.each<[string, () => unknown, string]>([
    ['throws something else than an Error', throwText, 'not an Error'],
    ['rejects with something else than an Error', rejectWith('down'), 'not an Error'],
    ['rejects with an Error', rejectWith(new Error('the observer is down')), 'the observer is down'],
  ])('changes no response, and is logged: one that %s', async (_how, onDecision, error) => {
    const through = gateApp({ onDecision: onDecision });
    await through.get(token()).expect(200);
    await through.get(token({ claims: { exp: 1 } })).expect(401);
    await new Promise(setImmediate);
    const failed = { level: 'error', fields: { error }, message: 'onDecision failed' };
    expect(through.log.at('error')).toEqual([failed, failed]);
  });
});

describe('the route in messages to developers', () => {
  const router = express.Router().get('/orders/:id', ok);
  it.each<[string, (app: express.Express) => unknown, string, string]>([
    ['of a router', (app) => app.use('/v1', router), '/v1/orders/7?x=1', '/v1/orders/:id'],
    ['that is a regular expression', (app) => app.get(/^\/v1\/ord/, ok), '/v1/orders?x=1', '/v1/orders'],
    ['without a declaration', (app) => app.use('/v1', ok), '/v1/orders?x=1', '/v1/orders'],
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
    await getFrom(app.use(problemHandler({ logger: log })), undefined, '/v1/7').expect(500);
    const fields = { route: 'GET /v1/:id', requestId: undefined, error: 'a text' };
    expect(log.entries).toEqual([{ level: 'error', fields, message: 'unexpected error' }]);
  });
});

it.each<[string, (options: object) => unknown]>([
  [
    'authenticate',
    (options) => authenticate({ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), ...options }),
  ],
  ['problemHandler', problemHandler],
  ['createAuthServer', (options) => createAuthServer({ issuer: ISSUER, audience: AUDIENCE, dataDir: '.', ...options })],
])('%s() refuses what is not a logger', async (name, make) => {
  const expected = 'option "logger" must be an object with the methods info, warn and error, or false, got null';
  await expect(Promise.resolve({ logger: null }).then(make)).rejects.toThrow(new TypeError(`${name}(): ${expected}`));
});

describe('a next() that throws later than its middleware returns', () => {
  type Run = (gate: Gate, next: () => never) => (req: GateRequest, res: ServerResponse) => void;
  const guard = requireClaim('client_id', () => Promise.resolve(true));
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  beforeAll(() => process.on('unhandledRejection', note));
  afterAll(() => process.off('unhandledRejection', note));

  it.each<[string, Run]>([
    ['the gate', (gate, next) => (req, res) => gate(req, res, next)],
    ['a guard whose test is a promise', (gate, next) => (req, res) => gate(req, res, () => guard(req, res, next))],
  ])('becomes a 500 and a log entry, not an unhandled rejection: %s', async (_where, run) => {
    const log = recordingLogger();
    const handle = run(testGate({ logger: log, unguarded: 'allow' }), () => {
      throw new Error('next is broken');
    });
    const server = createServer((req, res) => handle(req, res));
    const { status } = await getFrom(server, token());
    for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
    expect([status, unhandled]).toEqual([500, []]);
    expect(log.at('error')).toMatchObject([
      { fields: { error: expect.stringMatching(/^Error: next is broken\n\s+at /) }, message: 'next() threw' },
    ]);
  });
});
