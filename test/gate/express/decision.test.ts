import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import express from 'express';
import type { RequestHandler } from 'express';
import request from 'supertest';
import { problemHandler, authenticate, requireClaim } from '../../../src/gate/index';
import type { AuthenticateOptions } from '../../../src/gate/index';
import { gateApp, testGate } from '../../support/gate-app';
import type { GateAppOptions } from '../../support/gate-app';
import { token, AUDIENCE, ISSUER } from '../../support/issuer';
import { recordingLogger } from '../../support/log';
import { createAuthServer } from '../../../src/cli/auth-server/index';
import { jwks, testKey } from '../../support/keys';
import type { GateRequest } from '../../../src/gate/express/request-state';

describe('decisions', () => {
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
      const client = { issuer: ISSUER, clientId: 'pos-17' };
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

    it('for a refusal: why, and with which status', async () => {
      const { decisions, log } = await decisionOf('req-17', token({ claims: { client_id: '' } }));
      const [error] = decisions.map((decision) => decision.error);
      const client = { issuer: ISSUER, clientId: '' };
      expect(decisions).toEqual([
        { outcome: 'refused', reason: 'invalid_claims', status: 401, error, ...client, ...facts },
      ]);
      const fields = {
        reason: 'invalid_claims',
        status: 401,
        issuer: ISSUER,
        clientId: '',
        ...facts,
        detail: 'the client id is empty',
      };
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
});

const keys = jwks(testKey());
/** Everything that takes a logger, with options that are good besides. */
const factories: readonly [name: string, make: (logger: unknown) => unknown][] = [
  ['authenticate', (logger) => authenticate({ issuer: ISSUER, audience: AUDIENCE, keys, logger } as never)],
  ['problemHandler', (logger) => problemHandler({ logger } as never)],
  [
    'createAuthServer',
    (logger) =>
      createAuthServer({ issuer: 'http://127.0.0.1:4000', audience: AUDIENCE, dataDir: '.', logger } as never),
  ],
] satisfies [string, (logger: unknown) => unknown][];

describe.each(factories)('%s()', (name, make) => {
  it.each<[string, unknown, string]>([
    ['null', null, 'null'],
    ['a function', () => {}, 'a function'],
    ['a string', 'pino', '"pino"'],
    ...['info', 'warn', 'error'].map((method): [string, unknown, string] => [
      `a logger without ${method}()`,
      { ...recordingLogger(), [method]: undefined },
      'an object',
    ]),
  ])('refuses %s as its logger', async (_what, logger, got) => {
    await expect(Promise.resolve().then(() => make(logger))).rejects.toThrow(
      new TypeError(
        `${name}(): option "logger" must be an object with the methods info, warn and error, or false, got ${got}`,
      ),
    );
  });
});

/** A bug that was: the path went into log and `onDecision` as it came, with a token that somebody had put there. */
describe('a token in the path', () => {
  it('reaches neither the log nor onDecision', async () => {
    const misplaced = token({ claims: { scope: '' } });
    const through = gateApp();

    await through.get(undefined, `/v1/orders/${misplaced}`).expect(401);
    await through.get(misplaced, `/v1/orders/${misplaced}`).expect(404);
    await through.get(misplaced, `/v1/orders?token=${misplaced}`).expect(403);

    expect(through.decisions.map(({ path }) => path)).toEqual([
      expect.stringMatching(/^\/v1\/orders\/\[\d+\]$/),
      expect.stringMatching(/^\/v1\/orders\/\[\d+\]$/),
      '/v1/orders',
      '/v1/orders',
    ]);
    const told = JSON.stringify([through.log.entries, through.decisions.map(({ path }) => path)]);
    for (const part of misplaced.split('.')) expect(told).not.toContain(part);
  });
});

/** A server without Express, whose `next` throws each time it is called. */
function throwing(run: (gate: ReturnType<typeof authenticate>, next: () => never) => (...args: Args) => void) {
  const log = recordingLogger();
  const gate = testGate({ logger: log, unguarded: 'allow' });
  const handle = run(gate, () => {
    throw new Error('next is broken');
  });
  return { log, server: createServer((req, res) => handle(req, res)) };
}

type Args = [GateRequest, ServerResponse];

describe('a next() that throws later than its middleware returns', () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  beforeAll(() => process.on('unhandledRejection', note));
  afterAll(() => process.off('unhandledRejection', note));

  it.each<[string, Parameters<typeof throwing>[0]]>([
    ['the gate', (gate, next) => (req, res) => gate(req, res, next)],
    [
      'a guard whose test is a promise',
      (gate, next) => {
        const guard = requireClaim('client_id', () => Promise.resolve(true));
        return (req, res) => gate(req, res, () => guard(req, res, next));
      },
    ],
  ])('becomes a 500 and a log entry, not an unhandled rejection: %s', async (_where, run) => {
    const { log, server } = throwing(run);
    const { status } = await request(server).get('/').set('Authorization', `Bearer ${token()}`);
    for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
    expect([status, unhandled]).toEqual([500, []]);
    expect(log.at('error')).toMatchObject([
      { fields: { error: expect.stringMatching(/^Error: next is broken\n\s+at /) }, message: 'next() threw' },
    ]);
  });
});
