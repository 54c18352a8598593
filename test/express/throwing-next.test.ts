import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import request from 'supertest';
import { authenticate, requireClaim } from '../../src';
import type { GateRequest } from '../../src/express/request-state';
import { AUDIENCE, ISSUER, NOW_MS, token } from '../support/issuer';
import { jwks, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

/** A server without Express, whose `next` throws each time it is called. */
function throwing(run: (gate: ReturnType<typeof authenticate>, next: () => never) => (...args: Args) => void) {
  const log = recordingLogger();
  const gate = authenticate({
    ...{ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS, logger: log },
    unguarded: 'allow',
  });
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
