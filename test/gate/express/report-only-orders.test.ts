import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { ErrorRequestHandler, RequestHandler } from 'express';
import { authOf, reportOnly, requireAuthenticated, requireClaim, requireScope, sendProblem } from '../../../src/gate';
import type { AuthenticateOptions, Gate } from '../../../src/gate';
import { dpop } from '../../../src/gate/possession';
import { BASE_URL, boundToken, proof } from '../../support/dpop';
import { isFullRun } from '../../support/amount';
import { testGate } from '../../support/gate-app';
import { AUDIENCE, NOW_MS, token } from '../../support/issuer';
import { jwks, newKey } from '../../support/keys';

const OTHER = 'https://other.test';
const possession = () => [dpop({ baseUrl: BASE_URL })];

/** What the gates that decide say while a request is sent. */
let decisions: unknown[];

function gate(options: Partial<AuthenticateOptions> = {}): Gate {
  return testGate({
    onDecision: ({ outcome, reason, clientId }) => void decisions.push([outcome, reason, clientId]),
    ...options,
  });
}

const guard = requireScope('orders:read');
const claim = requireClaim('client_id', (id) => Promise.resolve(id === 'pos-17'));

/** Responds with all that a handler can see of the caller. */
const handler: RequestHandler = (req, res) => {
  res.json([req.auth ?? null, authOf(req) ?? null]);
};
const problem: RequestHandler = (req, res) => sendProblem(req, res, { status: 404, code: 'not_found' });
/** Goes on after a refusal, as if there had been none. */
const goOn: ErrorRequestHandler = (_error, _req, _res, next) => next();

type Layer = RequestHandler | ErrorRequestHandler;

/** What is mounted by an app without a trial; each gate is a new one. */
const APPS: Readonly<Record<string, () => readonly Layer[]>> = {
  'a guard': () => [gate(), guard, handler],
  'two guards': () => [gate(), guard, claim, handler],
  'scopes of two guards': () => [gate(), guard, requireScope('orders:cancel'), handler],
  'an optional gate': () => [gate({ optional: true }), handler],
  'an optional gate and a guard': () => [gate({ optional: true }), guard, handler],
  'no guard': () => [gate({ unguarded: 'refuse' }), handler],
  'two gates': () => [gate(), gate({ audience: [OTHER, AUDIENCE] }), guard, handler],
  'a gate after a guard': () => [gate(), guard, gate({ unguarded: 'refuse' }), requireAuthenticated(), handler],
  'errors of the app': () => [gate({ refusals: 'next' }), guard, handler, goOn, guard, handler],
  DPoP: () => [gate({ possession: possession() }), guard, handler],
  'a problem': () => [gate({ problemTypes: 'https://api.test/problems/' }), guard, problem],
};

/** What is on trial. */
const TRIALS: Readonly<Record<string, () => RequestHandler>> = {
  'a gate that would refuse everything': () => reportOnly(gate({ issuer: OTHER, keys: jwks(newKey('ES256')) })),
  'a gate that would accept everybody': () =>
    reportOnly(gate({ optional: true, problemTypes: 'https://other.test/', possession: possession() })),
  'a guard that would refuse': () => reportOnly(requireScope('orders:delete')),
  'a guard that would allow': () => reportOnly(requireScope('menus:read')),
};

const bearer = (raw: string) => ({ authorization: `Bearer ${raw}` });
const REQUESTS: Readonly<Record<string, () => Readonly<Record<string, string>>>> = {
  'no token': () => ({}),
  'a bad token': () => bearer('x'),
  'a good token': () => bearer(token()),
  'a token without the scope': () => bearer(token({ claims: { scope: 'menus:read' } })),
  'an expired token': () => bearer(token({ claims: { exp: NOW_MS / 1000 - 60 } })),
  'a bound token': () => ({ authorization: `DPoP ${boundToken()}`, dpop: proof({ url: `${BASE_URL}/orders` }) }),
};

/** What one app responds to all requests, and what its gates decide. */
async function behaviourOf(layers: readonly Layer[]): Promise<object> {
  decisions = [];
  const app = express();
  const inOrder: Layer[] = [...layers];
  // On the route, where the challenge of a guard names the scopes of all guards in a row.
  const first = inOrder.shift() as RequestHandler;
  app.get('/orders', first, ...(inOrder as RequestHandler[]));
  const server = createServer(app);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`;
  const responses: unknown[] = [];
  for (const headersOf of Object.values(REQUESTS)) {
    const response = await fetch(url, { headers: headersOf() });
    const headers = [...response.headers].filter(([name]) => name !== 'date');
    responses.push([response.status, headers, await response.text()]);
  }
  server.close().closeAllConnections();
  return { responses, decisions };
}

// Of guards without a gate before them.
beforeEach(() => void jest.spyOn(console, 'warn').mockImplementation(() => undefined));
afterEach(() => jest.restoreAllMocks());

describe.each(Object.entries(APPS))('an app with %s', (_app, layersOf) => {
  let expected: object;
  beforeAll(async () => {
    expected = await behaviourOf(layersOf());
  });

  it.each(Object.entries(TRIALS))('decides the same with %s on trial, wherever it is mounted', async (name, make) => {
    const places = [...layersOf().keys()].filter((place) => isFullRun || trialAt(place) === name);
    for (const place of places) {
      const layers = [...layersOf()];
      layers.splice(place, 0, make());
      expect({ place, ...(await behaviourOf(layers)) }).toEqual({ place, ...expected });
    }
  });

  it('decides the same with all of them everywhere', async () => {
    const all = () => Object.values(TRIALS).map((make) => make());
    expect(await behaviourOf(layersOf().flatMap((layer) => [...all(), layer]))).toEqual(expected);
  });

  /** In `npm test`, each place has one trial: another one in each app. */
  function trialAt(place: number): string | undefined {
    const names = Object.keys(TRIALS);
    return names[(place + Object.values(APPS).indexOf(layersOf)) % names.length];
  }
});
