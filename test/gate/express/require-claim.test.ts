import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express from 'express';
import { authOf, problemHandler, reportOnly, requireClaim } from '../../../src/gate';
import type { AuthenticateOptions, Gate, Middleware } from '../../../src/gate';
import { getFrom, testGate } from '../../support/gate-app';
import { listen } from '../../support/listen';
import { token } from '../../support/issuer';
import { recordingLogger } from '../../support/log';
import type { RecordingLogger } from '../../support/log';
import { challengeOf } from '../../support/refusals';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- the package under another name, which has no types
const express4 = require('express-4') as typeof express;

/* A test of requireClaim() that throws or rejects with anything but an AuthError. */

const WITH_CLAIM = token({ claims: { store: 'berlin-1' } });
const WITHOUT_CLAIM = token();
const NULL_CLAIM = token({ claims: { store: null } });

const THROWN: readonly [string, unknown][] = [
  ['an Error', new Error('the database is down')],
  ['an Error with status 401', Object.assign(new Error('no user'), { status: 401, statusCode: 401 })],
  ['{ status: 401 }', { status: 401 }],
  ['undefined', undefined],
  ['null', null],
  ["'route'", 'route'],
  ["'router'", 'router'],
  ['0', 0],
  ['an object without a text', Object.create(null)],
];

const TESTS: readonly [string, (thrown: unknown) => () => boolean | Promise<boolean>][] = [
  [
    'throws',
    (thrown) => () => {
      throw thrown;
    },
  ],
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as apps do
  ['rejects with', (thrown) => () => Promise.reject(thrown)],
];

interface Scene {
  readonly reached: string[];
  /** What an error handler of the app got. */
  readonly errors: unknown[];
  readonly log: RecordingLogger;
}

/** The frameworks and what they are given: a gate, a guard, and a handler that notes that it ran. */
type Mount = (gate: Gate, guard: Middleware, scene: Scene) => RequestListener;

const handlerOf =
  ({ reached }: Scene) =>
  (_req: IncomingMessage, res: ServerResponse): void => {
    reached.push('handler');
    res.end('ok');
  };

const inExpress =
  (make: typeof express, note: boolean): Mount =>
  (gate, guard, scene) => {
    const app = make();
    app.set('env', 'test');
    app.use(gate);
    app.get('/', guard, handlerOf(scene));
    app.get('/', handlerOf(scene));
    if (note) {
      app.use((error: unknown, _req: unknown, _res: unknown, next: (error: unknown) => void) => {
        scene.errors.push(error);
        next(error);
      });
    }
    return app;
  };

/** `next` without a look at its argument, as many write it for node:http. */
const inNode: Mount = (gate, guard, scene) => (req, res) => {
  gate(req, res, () => guard(req, res, () => handlerOf(scene)(req, res)));
};

/** As docs/recipes.md does it for Fastify, Koa, Hono and NestJS. */
const asInRecipes: Mount = (gate, guard, scene) => async (req, res) => {
  try {
    if (!authOf(req)) await gate.verify(req);
    await new Promise<void>((resolve, reject) => {
      guard(req, res, (error?: Error) => (error ? reject(error) : resolve()));
    });
    handlerOf(scene)(req, res);
  } catch (error) {
    scene.errors.push(error);
    problemHandler({ logger: scene.log })(error, req, res, () => undefined);
  }
};

const MOUNTS: readonly [string, Mount, Partial<AuthenticateOptions>, 'app' | 'guard'][] = [
  ['Express 5', inExpress(express, true), {}, 'app'],
  ['Express 5 without an error handler', inExpress(express, false), {}, 'app'],
  ['Express 4', inExpress(express4, true), {}, 'app'],
  ["Express 5 and refusals: 'next'", inExpress(express, true), { refusals: 'next' }, 'app'],
  ['node:http', inNode, {}, 'guard'],
  ['the recipes of other frameworks', asInRecipes, { refusals: 'next' }, 'app'],
];

function sceneOf(mount: Mount, guard: Middleware, options: Partial<AuthenticateOptions> = {}) {
  const scene: Scene = { reached: [], errors: [], log: recordingLogger() };
  const gate = testGate({ logger: scene.log, ...options });
  return { ...scene, get: (raw: string) => getFrom(createServer(mount(gate, guard, scene)), raw) };
}

describe.each(MOUNTS)('in %s, a test of requireClaim() that fails', (name, mount, options, responding) => {
  describe.each(TESTS)('and %s', (_how, testOf) => {
    it.each(THROWN)('%s, for a token with the claim: 500, and no handler runs', async (_what, thrown) => {
      const { get, reached, errors, log } = sceneOf(mount, requireClaim('store', testOf(thrown)), options);
      const response = await get(WITH_CLAIM);
      expect([response.status, response.headers['www-authenticate'], reached]).toEqual([500, undefined, []]);
      const failure = { message: 'the test of claim store failed', cause: thrown };
      if (responding === 'guard') {
        expect(response.body).toMatchObject({ status: 500, code: 'internal_error' });
        expect(log.entries).toMatchObject([
          { level: 'error', fields: { route: 'GET /' }, message: 'unexpected error' },
        ]);
        expect(String(log.entries[0]?.fields['error'])).toMatch(
          /^Error: the test of claim store failed\n[^]*\ncaused by /,
        );
      } else if (!name.includes('without')) {
        expect(errors).toHaveLength(1);
        expect(errors[0]).toBeInstanceOf(Error);
        expect(errors[0]).toMatchObject(failure);
        expect([Reflect.get(errors[0] as object, 'status'), Reflect.get(errors[0] as object, 'statusCode')]).toEqual([
          undefined,
          undefined,
        ]);
      }
    });

    it.each([
      ['no such claim', WITHOUT_CLAIM],
      ['null', NULL_CLAIM],
    ])('for a token with %s: 403 as ever, logged with the cause', async (_what, raw) => {
      const cause = new TypeError('cannot read x of undefined');
      const guard = requireClaim('store', testOf(cause));
      const { get, reached, errors, log } = sceneOf(mount, guard, options);
      const response = await get(raw);
      expect([response.status, reached]).toEqual([403, []]);
      if (options.refusals !== 'next') {
        expect(response.headers['www-authenticate']).toBe(challengeOf('claim_refused'));
        expect(response.body).toMatchObject({ code: 'claim_refused' });
        expect(errors).toEqual([]);
      }
      const detail = 'the token has no store; the test of claim store threw TypeError: cannot read x of undefined';
      expect(log.entries).toMatchObject([
        { level: 'error', fields: { route: 'GET /' }, message: 'a test of requireClaim() failed' },
        { level: 'info', fields: { reason: 'claim_refused', status: 403, detail }, message: 'request refused' },
      ]);
      expect(log.entries[0]?.fields['error']).toContain(`caused by ${cause.stack}`);
    });
  });
});

it('does not take an inherited member `next` for that of a router', async () => {
  const guard = requireClaim('store', () => {
    throw new Error('down');
  });
  const polluted: Mount = (gate, own, scene) => (req, res) => {
    Object.setPrototypeOf(req, Object.assign(Object.create(Object.getPrototypeOf(req) as object), { next: () => {} }));
    inNode(gate, own, scene)(req, res);
  };
  const { get, reached } = sceneOf(polluted, guard);
  expect([(await get(WITH_CLAIM)).status, reached]).toEqual([500, []]);
});

it('a guard on trial whose test fails changes nothing, and the log says that it could not be decided', async () => {
  const guard = requireClaim('store', () => Promise.reject(new Error('the database is down')));
  const { get, reached, log } = sceneOf(inExpress(express, true), reportOnly(guard), { unguarded: 'allow' });
  expect((await get(WITH_CLAIM)).status).toBe(200);
  await new Promise(setImmediate);
  expect([reached, log.at('info')]).toEqual([['handler'], []]);
  expect(log.at('error')).toMatchObject([{ message: 'a trial could not be decided' }]);
  expect(log.at('error')[0]?.fields['error']).toContain('caused by Error: the database is down');
});

describe('the log of a claim that was refused says what the test did', () => {
  it.each<[string, string, (value: unknown) => unknown, string]>([
    ['false', WITH_CLAIM, () => false, 'the test of claim store returned false'],
    ['a number', WITH_CLAIM, () => 6, 'the test of claim store returned 6, not true'],
    ['nothing', WITH_CLAIM, () => undefined, 'the test of claim store returned nothing'],
    ['null', WITH_CLAIM, () => null, 'the test of claim store returned null, not true'],
    [
      'a text, which may be secret',
      WITH_CLAIM,
      (value) => value,
      'the test of claim store returned a string, not true',
    ],
    ['an object', WITH_CLAIM, () => ({}), 'the test of claim store returned an object, not true'],
    ['a promise of a number', WITH_CLAIM, () => Promise.resolve(6), 'the test of claim store returned 6, not true'],
    ['false without the claim', WITHOUT_CLAIM, () => false, 'the token has no store'],
    [
      'nothing for null',
      NULL_CLAIM,
      () => undefined,
      'the token has no store; the test of claim store returned nothing',
    ],
  ])('%s', async (_what, raw, test, detail) => {
    const { get, log } = sceneOf(inExpress(express, true), requireClaim('store', test as () => boolean));
    expect((await get(raw)).status).toBe(403);
    expect(log.entries).toMatchObject([{ level: 'info', fields: { reason: 'claim_refused', detail } }]);
  });
});

it('hands the params of Express to a test that declares no type of request', async () => {
  const app = express();
  app.use(testGate());
  const reached: string[] = [];
  const own = requireClaim('store', (store, req) => store === req.params.store);
  app.get('/stores/:store', own, (req, res) => {
    reached.push(String(req.params.store));
    res.end('ok');
  });
  const bearer = { authorization: `Bearer ${WITH_CLAIM}` };
  const server = await listen(app);
  try {
    const responses = await Promise.all(
      ['berlin-1', 'berlin-2'].map((store) => fetch(`${server.url}/stores/${store}`, { headers: bearer })),
    );
    expect(responses.map(({ status }) => status)).toEqual([200, 403]);
    expect(reached).toEqual(['berlin-1']);
  } finally {
    await server.close();
  }
});
