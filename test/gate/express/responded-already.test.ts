import express from 'express';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  problemHandler,
  protectedResourceMetadata,
  requireAuthenticated,
  requireClaim,
  requireScope,
} from '../../../src/gate/index';
import type { AuthenticateOptions, Gate } from '../../../src/gate/index';
import { gateApp, getFrom, testGate } from '../../support/gate-app';
import { token } from '../../support/issuer';
import { recordingLogger } from '../../support/log';

const GOOD = token();
const EXPIRED = token({ claims: { exp: 1 } });

const RESPONDED: readonly [string, RequestHandler][] = [
  ['responded', (_req, res, next) => void (res.json('first'), next())],
  ['begun to respond', (_req, res, next) => void (res.type('text/plain').write('fir'), next())],
  ['responded and destroyed the socket', (_req, res, next) => void (res.end('first'), res.socket?.destroy(), next())],
];

const errors = problemHandler({ logger: recordingLogger() });
const fails: RequestHandler = (_req, _res, next) => next(new Error('late'));
const last: RequestHandler = (_req, res) => void res.json('second');
const metadata = protectedResourceMetadata(testGate({ resource: 'https://api.test' }));
const resolves = requireClaim('iss', () => Promise.resolve(true));
const rejects = requireClaim('iss', () => Promise.reject(new Error('down')));

/** What an app mounts, next to the middleware that has responded. */
const APPS: readonly [string, (before: RequestHandler, gate: Gate) => (RequestHandler | ErrorRequestHandler)[]][] = [
  ['the gate', (before, gate) => [before, gate, last, errors]],
  ['requireScope()', (before, gate) => [gate, before, requireScope('orders:read'), last, errors]],
  ['requireScope() that refuses', (before, gate) => [gate, before, requireScope('x'), last, errors]],
  ['requireAuthenticated()', (before, gate) => [gate, before, requireAuthenticated(), last, errors]],
  ['requireClaim() that resolves', (before, gate) => [gate, before, resolves, last, errors]],
  ['requireClaim() that rejects', (before, gate) => [gate, before, rejects, last, errors]],
  ['a guard without a gate', (before) => [before, requireScope('x'), last, errors]],
  ['problemHandler()', (before) => [before, fails, errors]],
  ['the metadata', (before) => [before, metadata, last]],
];

const GATES: readonly [string, Partial<AuthenticateOptions>][] = [
  ['responds', {}],
  ['hands refusals on', { refusals: 'next' }],
  ['watches for guards', { unguarded: 'refuse' }],
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
afterEach(async () => {
  await new Promise(setImmediate);
  expect(fatal).toEqual([]);
});

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
  describe.each(APPS)('%s', (_where, layersOf) => {
    it.each(GATES)('neither ends the process nor adds to the response: the gate %s', async (_what, options) => {
      const layers = layersOf(before, testGate(options)) as RequestHandler[];
      const server = express().use(layers).listen(0, '127.0.0.1');
      await once(server, 'listening');
      try {
        for (const raw of [GOOD, EXPIRED, GOOD, GOOD]) {
          const text = await outcome(server, raw);
          expect(text).not.toContain('second');
          // A response that is complete stays so.
          if (how === 'responded') expect(() => JSON.parse(text) as unknown).not.toThrow();
        }
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
  expect((await getFrom(express().use(ended, testGate()), EXPIRED)).text).toHaveLength(text.length);
});

describe('what runs outside Express', () => {
  it('hands an error that is thrown while a new token is accepted to the app', async () => {
    const readOnly: RequestHandler = (req, _res, next) => {
      Object.defineProperty(req, 'auth', {
        set() {
          throw new TypeError('read-only');
        },
      });
      next();
    };
    await getFrom(express().use(readOnly, gateApp().gate, last, errors), GOOD).expect(500);
  });

  it('responds to the others when the connection of one is gone while their signatures wait', async () => {
    const hangsUp: RequestHandler = (req, _res, next) => {
      next();
      if (req.path === '/gone') req.socket.destroy();
    };
    const server = express().use(hangsUp, gateApp().gate, last, errors).listen(0);
    const get = (path: string): Promise<number | string> =>
      getFrom(server, token({ claims: { jti: path } }), path).then(
        ({ status }) => status,
        ({ code }: { code: string }) => code,
      );
    expect(await Promise.all(['/1', '/gone', '/2'].map(get))).toEqual([200, 'ECONNRESET', 200]);
    server.close();
  });
});
