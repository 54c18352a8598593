import express from 'express';
import type { RequestHandler } from 'express';
import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import request from 'supertest';
import {
  problemHandler,
  protectedResourceMetadata,
  requireAuthenticated,
  requireClaim,
  requireScope,
} from '../../../src/gate/index';
import type { AuthenticateOptions } from '../../../src/gate/index';
import { gateApp, testGate } from '../../support/gate-app';
import { token } from '../../support/issuer';
import { recordingLogger } from '../../support/log';

const GOOD = token();
const EXPIRED = token({ claims: { exp: 1 } });

const RESPONDED: readonly [string, RequestHandler][] = [
  ['responded', (_req, res, next) => void (res.json('first'), next())],
  ['begun to respond', (_req, res, next) => void (res.type('text/plain').write('fir'), next())],
  ['responded and destroyed the socket', (_req, res, next) => void (res.end('first'), res.socket?.destroy(), next())],
];

type Use = (before: RequestHandler, options: Partial<AuthenticateOptions>) => express.Express;

const errors = problemHandler({ logger: recordingLogger() });
const fails: RequestHandler = (_req, _res, next) => next(new Error('late'));
const last: RequestHandler = (_req, res) => void res.json('second');

const ENTRY_POINTS: readonly [string, Use][] = [
  ['the gate', (before, options) => express().use(before, testGate(options), last, errors)],
  [
    'requireScope()',
    (before, options) => express().use(testGate(options), before, requireScope('orders:read'), last, errors),
  ],
  [
    'requireScope() that refuses',
    (before, options) => express().use(testGate(options), before, requireScope('x'), last, errors),
  ],
  [
    'requireAuthenticated()',
    (before, options) => express().use(testGate(options), before, requireAuthenticated(), last, errors),
  ],
  [
    'requireClaim() that resolves',
    (before, options) =>
      express().use(
        testGate(options),
        before,
        requireClaim('iss', async () => Promise.resolve(true)),
        last,
        errors,
      ),
  ],
  [
    'requireClaim() that rejects',
    (before, options) =>
      express().use(
        testGate(options),
        before,
        requireClaim('iss', () => Promise.reject(new Error('down'))),
        last,
        errors,
      ),
  ],
  ['a guard without a gate', (before) => express().use(before, requireScope('x'), last, errors)],
  ['problemHandler()', (before) => express().use(before, fails, errors)],
  [
    'the metadata',
    (before) => express().use(before, protectedResourceMetadata(testGate({ resource: 'https://api.test' })), last),
  ],
];

/** Whatever the process would have died of. */
const fatal: unknown[] = [];
const note = (error: unknown): void => void fatal.push(error);
beforeAll(() => {
  process.on('unhandledRejection', note);
  process.on('uncaughtException', note);
  jest.spyOn(console, 'error').mockImplementation(() => {});
});
afterAll(() => {
  process.off('unhandledRejection', note);
  process.off('uncaughtException', note);
  jest.restoreAllMocks();
});

async function listen(app: express.Express): Promise<Server> {
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** The response as far as it came. */
function outcome(server: Server, raw: string): Promise<string> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve) => {
    const path = '/.well-known/oauth-protected-resource';
    const sent = send({ port, path, host: '127.0.0.1', agent: false, headers: { authorization: `Bearer ${raw}` } });
    sent.on('response', (response: IncomingMessage) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('error', () => {});
      response.on('close', () => resolve(text));
    });
    sent.on('error', () => resolve(''));
    sent.end();
  });
}

describe.each(RESPONDED)('after a middleware that has %s', (how, before) => {
  describe.each(ENTRY_POINTS)('%s', (_where, use) => {
    it.each<[string, Partial<AuthenticateOptions>]>([
      ['responds', {}],
      ['hands refusals on', { refusals: 'next' }],
      ['watches for guards', { unguarded: 'refuse' }],
    ])('neither ends the process nor adds to the response: the gate %s', async (_what, options) => {
      const server = await listen(use(before, options));
      try {
        for (const raw of [GOOD, EXPIRED, GOOD, GOOD]) {
          const text = await outcome(server, raw);
          expect(text).not.toContain('second');
          // A response that is complete stays so.
          if (how === 'responded') expect(() => JSON.parse(text) as unknown).not.toThrow();
        }
        await new Promise((resolve) => setImmediate(resolve));
        expect(fatal).toEqual([]);
      } finally {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    });
  });
});

it('a large response that is complete arrives whole when its request is refused afterwards', async () => {
  const text = 'x'.repeat(8_000_000);
  const ended: RequestHandler = (_req, res, next) => void (res.end(text), next());
  const app = express().use(ended, testGate({}));
  expect((await request(app).get('/').set('Authorization', `Bearer ${EXPIRED}`)).text).toHaveLength(text.length);
});

describe('what runs outside Express', () => {
  it('logs an onDecision that rejects, and responds the same', async () => {
    const through = gateApp({ onDecision: () => Promise.reject(new Error('the observer is down')) });
    await through.get(GOOD).expect(200);
    await through.get(EXPIRED).expect(401);
    await new Promise((resolve) => setImmediate(resolve));
    const failed = { level: 'error', fields: { error: 'the observer is down' }, message: 'onDecision failed' };
    expect(through.log.at('error')).toEqual([failed, failed]);
    expect(fatal).toEqual([]);
  });

  it('hands an error that is thrown while a new token is accepted to the app', async () => {
    const { gate } = gateApp();
    const readOnly: RequestHandler = (req, _res, next) => {
      Object.defineProperty(req, 'auth', {
        set() {
          throw new TypeError('read-only');
        },
      });
      next();
    };
    const app = express().use(readOnly, gate, last, problemHandler({ logger: recordingLogger() }));
    await request(app).get('/').set('Authorization', `Bearer ${GOOD}`).expect(500);
    expect(fatal).toEqual([]);
  });

  it('responds to the others when the connection of one is gone while their signatures wait', async () => {
    const { gate } = gateApp();
    const hangsUp: RequestHandler = (req, _res, next) => {
      next();
      if (req.path === '/gone') req.socket.destroy();
    };
    const app = express().use(hangsUp, gate, last, errors);
    const server = app.listen(0);
    const get = (path: string): Promise<number | string> =>
      request(server)
        .get(path)
        .set('Authorization', `Bearer ${token({ claims: { jti: path } })}`)
        .then(
          ({ status }) => status,
          ({ code }: { code: string }) => code,
        );
    expect(await Promise.all(['/1', '/gone', '/2'].map(get))).toEqual([200, 'ECONNRESET', 200]);
    expect(fatal).toEqual([]);
    server.close();
  });
});
