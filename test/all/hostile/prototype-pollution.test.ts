import express from 'express';
import type { Express } from 'express';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { problemHandler, requireAuthenticated, requireClaim, requireScope } from '../../../src/gate/index';
import type { Gate } from '../../../src/gate/index';
import { createGate } from '../../../src/gate/express/authenticate';
import type { Batch, Change, GenerationSource } from '../../../src/gate/generation/log';
import { splitInternals } from '../../support/gate-internals';
import { AUDIENCE, goodClaims, ISSUER, NOW_MS, token } from '../../support/issuer';
import { jwks, newKey, testKey } from '../../support/keys';
import { recordingLogger } from '../../support/log';
import { memberNames, pollute, prepareRequest } from './pollution';

const NAMES = memberNames(['core', 'token', 'generation', 'express']);
const DECISIVE = ['anyOf', 'allOf', 'typ', 'crit', 'optional', 'allowed', 'auth', 'scope', 'exp', 'authorization'];

/** What a polluted member can be. */
const VALUES: readonly [string, unknown][] = [
  ['true', true],
  ['a text', 'orders:read'],
  ['an object', { allOf: [], anyOf: [] }],
  ['a time far away', 9e15],
];

function gateOf(given: object = {}): Gate {
  const [options, internals] = splitInternals(given);
  const defaults = { issuer: ISSUER, audience: AUDIENCE, clock: () => NOW_MS, logger: recordingLogger() };
  return createGate({ ...defaults, unguarded: 'refuse', ...options }, internals);
}

function appOf(gate: Gate): Express {
  const app = express().use(gate);
  app.get('/scope', requireScope('orders:read'), reach);
  app.get('/any', requireScope({ anyOf: ['orders:read', 'x'] }), reach);
  const claim = requireClaim('store', (store) => store !== undefined);
  app.get('/claim', claim, reach);
  app.get('/token', requireAuthenticated(), reach);
  app.get('/unguarded', reach);
  return app.use(problemHandler({ logger: recordingLogger() }));
}

function reach(_req: IncomingMessage, res: ServerResponse): void {
  res.statusCode = 200;
  res.end('reached');
}

const TOKENS: readonly (string | undefined)[] = [
  undefined,
  token(),
  token({ claims: { scope: '' } }),
  token({ claims: { exp: 1 } }),
  token({ claims: { generation: undefined } }),
  token({ claims: { client_id: undefined } }),
  token({ claims: { aud: undefined } }),
  token({ header: { typ: undefined } }),
  token({ header: { alg: 'none' } }),
  token({ key: newKey('ES256', testKey().kid) }),
  'opaque-active',
  'opaque-bound',
  'opaque-unknown',
];
const REQUESTS: readonly (readonly [string, string | undefined])[] = [
  ...TOKENS.map((raw) => ['/scope', raw] as const),
  ...['/any', '/claim', '/token', '/unguarded'].map((path) => [path, TOKENS[1]] as const),
];

/** A log with one change, after which nothing follows. */
function logOf(change: Change): GenerationSource {
  let batches = [{ changes: [change], end: true }];
  const next = (): Promise<Batch> => {
    const [batch] = batches;
    batches = [];
    return batch ? Promise.resolve(batch) : new Promise(() => undefined);
  };
  return { mark: false, reader: () => ({ next, close() {} }) };
}

/** A gate that fetches its keys, and reads its generations, of which one client has a newer one. */
const remote = (): object => ({
  jwksUri: `${ISSUER}/jwks`,
  fetch: () => Promise.resolve(new Response(JSON.stringify(jwks(testKey())))),
  generationSource: logOf(['pos-18', NOW_MS]),
  schedule: () => ({ cancel() {} }),
});

/** A gate that introspects opaque tokens. */
const INTROSPECTED: readonly [string, string][] = [
  ['opaque-active', JSON.stringify({ active: true, ...goodClaims() })],
  ['opaque-bound', JSON.stringify({ active: true, ...goodClaims(), cnf: { jkt: 'x' } })],
];
const introspecting = (): object => ({
  keys: jwks(testKey()),
  opaque: { url: `${ISSUER}/introspect`, clientId: 'api', clientSecret: 'secret', cacheMs: 0 },
  fetch: (_url: string, init: RequestInit) => {
    const [, text = '{"active":false}'] = INTROSPECTED.find(([raw]) => (init.body as string).includes(raw)) ?? [];
    return Promise.resolve(new Response(text));
  },
  schedule: () => ({ cancel() {} }),
});

/** Too many names for every request: a good token, one without its scope, and a broken one. */
const FEW = [1, 2, 9].map((index) => REQUESTS[index]!);

const GATES: readonly [string, () => object][] = [
  ['given keys', () => ({ keys: jwks(testKey()), verifiedTokens: 0 })],
  [
    'scopes from several claims, mapped',
    () => ({
      keys: jwks(testKey()),
      verifiedTokens: 0,
      scopes: { from: ['scope', 'realm_access.roles'], map: { 'orders:read': ['orders:read'] } },
    }),
  ],
  ['an optional gate', () => ({ keys: jwks(testKey()), optional: true })],
  ['a remote key set and a generation source', remote],
  ['introspection', introspecting],
];

/** The responses of several apps to all requests while `names` are polluted. */
async function responsesOfAll(
  apps: readonly (readonly [what: string, app: Express])[],
  names: readonly string[],
  value: unknown,
): Promise<[what: string, responses: string[]][]> {
  const prepared = apps.map(([what, app]) => ({
    ...{ what, app, requests: REQUESTS.map(([path, raw]) => prepareRequest(path, raw)) },
    responses: [] as string[],
  }));
  const restore = pollute(names, value);
  try {
    for (const { app, requests, responses } of prepared)
      for (const one of requests) responses.push(await one.send(app));
  } finally {
    restore();
  }
  return prepared.map(({ what, responses }) => [what, responses]);
}

/** The responses of an app to each request while `names` are polluted. */
async function responses(
  app: () => Promise<Express>,
  names: readonly string[],
  value: unknown,
  requests = REQUESTS,
): Promise<string[]> {
  const prepared = requests.map(([path, raw]) => prepareRequest(path, raw));
  const restore = pollute(names, value);
  try {
    const opened = await app();
    const all: string[] = [];
    for (const one of prepared) all.push(await one.send(opened));
    return all;
  } finally {
    restore();
  }
}

describe('members of Object.prototype, of every name that the gate reads', () => {
  it('are many', () => {
    expect(NAMES.length).toBeGreaterThan(450);
    expect(NAMES).toEqual(expect.arrayContaining(DECISIVE));
  });

  it.each(GATES)('one after the other, decide no request: %s', async (_what, options) => {
    const gate = gateOf(options());
    await gate.ready();
    const app = appOf(gate);
    const expected = await responses(() => Promise.resolve(app), [], true, FEW);
    expect(expected).toEqual(['200', '403 insufficient_scope', '401 invalid_token']);
    const changed: unknown[] = [];
    for (const name of NAMES) {
      const got = await responses(() => Promise.resolve(app), [name], 'orders:read', FEW);
      if (got.join() !== expected.join()) changed.push([name, got]);
    }
    expect(changed).toEqual([]);
  });

  // All gates while the names are there once: adding and removing them takes longer than the requests.
  it.each(VALUES)('all together, decide no request, whatever the gate: %s', async (_value, polluted) => {
    const gates = GATES.map(([what, options]) => [what, gateOf(options())] as const);
    await Promise.all(gates.map(([, gate]) => gate.ready()));
    const apps = gates.map(([what, gate]) => [what, appOf(gate)] as const);
    const expected = await responsesOfAll(apps, [], true);
    for (const [, ofOne] of expected) expect(ofOne).toContain('200');
    expect(await responsesOfAll(apps, NAMES, polluted)).toEqual(expected);
  });

  it('change no option that is read at the same time', async () => {
    const options = GATES[0]![1];
    const open = async (): Promise<Express> => {
      const gate = gateOf(options());
      await gate.ready();
      return appOf(gate);
    };
    const expected = await responses(open, [], true, FEW);
    expect(expected).toContain('200');
    const changed: unknown[] = [];
    for (const name of NAMES.filter((one) => one !== 'value')) {
      // Object.defineProperty() refuses a descriptor with an inherited `value`, which no code can avoid.
      const got = await responses(open, [name], 'orders:read', FEW).catch((error: unknown) => [String(error)]);
      if (got.join() !== expected.join()) changed.push([name, got]);
    }
    expect(changed).toEqual([]);
  });
});

describe('members of Object.prototype that node:crypto reads from its options', () => {
  const NAMES_OF_CRYPTO = [
    'context',
    'padding',
    'saltLength',
    'dsaEncoding',
    'format',
    'type',
    'passphrase',
    'encoding',
  ];
  const VALUES_OF_CRYPTO: readonly unknown[] = ['der', 'orders:read', true, 1, {}];

  it.each(['RS256', 'PS256', 'ES256', 'EdDSA'])('decide nothing about %s', async (algorithm) => {
    const key = testKey(algorithm);
    const gate = gateOf({ keys: jwks(key), verifiedTokens: 0 });
    const app = appOf(gate);
    const forged = token({ key: newKey(algorithm, key.kid) });
    const requests = [token({ key }), forged].map((raw) => ['/scope', raw] as const);
    const changed: unknown[] = [];
    for (const name of NAMES_OF_CRYPTO) {
      for (const value of VALUES_OF_CRYPTO) {
        const got = await responses(() => Promise.resolve(app), [name], value, requests);
        if (got.join() !== '200,401 invalid_token') changed.push([name, value, got]);
      }
    }
    expect(changed).toEqual([]);
  });
});
