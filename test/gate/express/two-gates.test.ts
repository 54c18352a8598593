import express from 'express';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import type { Test } from 'supertest';
import { authOf, endWithToken, requireAuthenticated, requireClaim, requireScope } from '../../../src/gate';
import type { AuthenticateOptions, Gate } from '../../../src/gate';
import { fakeTime } from '../../support/fake-time';
import { getFrom, testGate } from '../../support/gate-app';
import { NOW_MS, token } from '../../support/issuer';

/** Each reads the scopes from a claim of its own, so that the same token means something else to each of them. */
function gateOf(claim: string, options: Partial<AuthenticateOptions> = {}): Gate {
  return testGate({ scopes: { from: [claim] }, realm: claim, ...options });
}

const handler: RequestHandler = (req, res) => void res.json([req.auth?.scopes, authOf(req)?.scopes]);

function get(
  layers: readonly (RequestHandler | ErrorRequestHandler)[],
  claims: Readonly<Record<string, unknown>>,
): Test {
  const app = express().get('/', ...(layers as RequestHandler[]));
  return getFrom(app, token({ claims }));
}

const both = { first: 'a', second: 'a b' };

describe('two gates that decide', () => {
  it.each([
    ['a scope that both have', requireScope('a'), 200],
    ['a scope that only the second one has', requireScope('b'), 403],
    ['any of them', requireScope({ anyOf: ['b', 'a'] }), 200],
    ['a token', requireAuthenticated(), 200],
    ['a claim', requireClaim('first', (value) => value === 'a'), 200],
    ['a claim, by a promise', requireClaim('first', (value) => Promise.resolve(value === 'b')), 403],
  ])('a guard has to hold for both: %s', async (_what, guard, status) => {
    for (const order of [
      ['first', 'second'],
      ['second', 'first'],
    ]) {
      await get([...order.map((claim) => gateOf(claim)), guard, handler], both).expect(status);
    }
  });

  it('the gate whose result is not enough refuses', async () => {
    const response = await get([gateOf('first'), gateOf('second'), requireScope('b'), handler], both);
    expect(response.get('WWW-Authenticate')).toContain('realm="first", error="insufficient_scope"');
  });

  it('req.auth and authOf() are those of the last one', async () => {
    await get([gateOf('first'), gateOf('second'), requireScope('a'), handler], both).expect(200, [
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('a guard between them does not count for the second one', async () => {
    const layers = [gateOf('first'), requireScope('a'), gateOf('second', { unguarded: 'refuse' }), handler];
    await get(layers, both).expect(500);
  });

  it('a guard of the first one allows the response where it asks both', async () => {
    const layers = [gateOf('first', { unguarded: 'refuse' }), gateOf('second'), requireScope('a'), handler];
    await get(layers, both).expect(200);
  });

  const goOn: ErrorRequestHandler = (_error, _req, _res, next) => next();

  it.each([
    ['before', [gateOf('first', { audience: 'https://other.test', refusals: 'next' }), goOn, gateOf('second')]],
    ['after', [gateOf('second'), gateOf('first', { audience: 'https://other.test', refusals: 'next' }), goOn]],
  ])('a refusal that the app passes over still counts for guards: %s the gate that accepts', async (_when, gates) => {
    const response = await get([...gates, requireScope('a'), handler, goOn], both);
    expect([response.status, response.body]).not.toEqual([200, expect.anything()]);
  });

  it('verify() counts as a gate: also where the app passes over its refusal', async () => {
    const other = gateOf('first', { audience: 'https://other.test' });
    const verifyOther: RequestHandler = (req, _res, next) =>
      void other.verify(req).then(
        () => next(),
        () => next(),
      );
    await get([gateOf('second'), verifyOther, requireScope('a'), handler], both).expect(401);
    await get([gateOf('second'), verifyOther, handler], both).expect(200, [['a', 'b'], null]);
  });

  it('one gate that decides again replaces its result', async () => {
    const gate = gateOf('second');
    const again: RequestHandler = async (req, _res, next) => {
      const { authorization } = req.headers;
      delete req.headers.authorization;
      await expect(gate.verify(req)).rejects.toMatchObject({ reason: 'missing_token' });
      Object.assign(req.headers, { authorization });
      for (let turn = 0; turn < 10_000; turn++) await gate.verify(req);
      next();
    };
    let asked = 0;
    const guard = requireClaim('second', () => ++asked > 0);
    await get([gate, again, gate, guard, handler], both).expect(200);
    expect(asked).toBe(1);
  });

  it('a stream ends with the token that is no longer accepted first', async () => {
    const time = fakeTime(NOW_MS);
    const second = fakeTime(NOW_MS);
    const gates = [time, second].map(({ clock, schedule }) => gateOf('first', { clock, schedule }));
    let isOpen = false;
    const stream: RequestHandler = (_req, res) => {
      isOpen = true;
      res.type('text/event-stream').write(': hello\n\n');
      res.once('close', () => (isOpen = false));
    };
    const response = get([...gates, requireScope('a'), endWithToken(), stream], both).then(({ text }) => text);
    while (!isOpen) await new Promise(setImmediate);
    // Of the first gate only.
    time.step(86_400_000);
    await time.advance(1_000);
    expect(await response).toBe(': hello\n\n');
  });
});
