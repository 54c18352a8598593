import { createHmac } from 'node:crypto';
import express from 'express';
import request from 'supertest';
import { authenticate, requireScope } from '../../src/gate/index';
import type { AuthenticateOptions } from '../../src/gate/index';
import { REASONS } from '../../src/gate/core/reasons';
import { AUDIENCE, base64url, ISSUER, NOW, NOW_MS, token } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';

/*
 * What operators read when a configuration or a token is wrong: what it was, what is expected, what to do. Texts may change;
 * each must go on saying these three.
 */

type Options = Partial<AuthenticateOptions>;

const { kid: _kid, ...KEYLESS } = testKey().jwk;
const { kid: _other, ...KEYLESS_OTHER } = newKey().jwk;
const NO_KID = { header: { kid: undefined } };
const HS256_INPUT = `${base64url('{"alg":"HS256","typ":"at+jwt"}')}.${base64url(JSON.stringify({ iss: ISSUER }))}`;
const HS256 = `${HS256_INPUT}.${createHmac('sha256', 'secret').update(HS256_INPUT).digest('base64url')}`;
const UNSIGNED = `${base64url('{"alg":"none","typ":"JWT"}')}.${base64url(JSON.stringify({ iss: ISSUER }))}.`;

/** A server whose introspection endpoint responds with `body`. */
function introspecting(body: object): Options {
  const documents: Record<string, object> = {
    'openid-configuration': { issuer: ISSUER, jwks_uri: `${ISSUER}/keys`, introspection_endpoint: `${ISSUER}/in` },
    keys: jwks(testKey()),
    in: body,
  };
  const fetch = (url: string): Promise<Response> =>
    Promise.resolve(Response.json(documents[url.split('/').at(-1) ?? ''] ?? {}));
  return { keys: undefined, fetch, opaque: { clientId: 'api', clientSecret: 'secret' } };
}

function open(options: Options) {
  const logger = recordingLogger();
  const gate = authenticate({
    ...{ issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()), clock: () => NOW_MS, logger, exposeReasons: true },
    ...options,
  } as AuthenticateOptions);
  const app = express()
    .use(gate)
    .get('/', requireScope('orders:read'), (_req, res) => void res.json('ok'));
  return { gate, app, logger };
}

/** Reason and detail of the refusal in the log. */
async function refusalOf(raw: string, options: Options): Promise<readonly unknown[]> {
  const { app, gate, logger } = open(options);
  await request(app).get('/').set('Authorization', `Bearer ${raw}`);
  await gate.close();
  const refusal = logger.entries.find(({ message }) => message === 'request refused');
  return [refusal?.fields['reason'], refusal?.fields['detail']];
}

const VENDOR = 'it is not an access token, or the preset is of another vendor';

it.each<readonly [what: string, raw: string, options: Options, reason: string, detail: string]>([
  ['an ID token', token({ claims: { at_hash: 'x' } }), {}, 'wrong_type', 'an ID token (at_hash)'],
  [
    'an ID token of Keycloak',
    token({ header: { typ: 'JWT' }, claims: { typ: 'ID', azp: 'shop' } }),
    { preset: 'keycloak' },
    'invalid_claims',
    `claim typ is "ID", expected "Bearer"; ${VENDOR}`,
  ],
  [
    'a token of another vendor',
    token(),
    { preset: 'keycloak' },
    'invalid_claims',
    `claim typ is missing, expected "Bearer"; ${VENDOR}`,
  ],
  [
    'an ID token of Cognito',
    token({ header: { typ: undefined }, claims: { token_use: 'id' } }),
    { preset: 'cognito' },
    'invalid_claims',
    `claim token_use is "id", expected "access"; ${VENDOR}`,
  ],
  [
    'a JWT where RFC 9068 is expected',
    token({ header: { typ: 'JWT' } }),
    {},
    'wrong_type',
    'header typ is "JWT", expected at+jwt',
  ],
  [
    'a token without typ',
    token({ header: { typ: undefined } }),
    {},
    'wrong_type',
    'header typ is missing, expected at+jwt',
  ],
  [
    'scopes between commas',
    token({ claims: { scope: 'orders:read,orders:write' } }),
    {},
    'insufficient_scope',
    'needs orders:read, has orders:read,orders:write; scopes are joined by commas: have the issuer put blanks between them (RFC 6749 section 3.3)',
  ],
  [
    'scopes in one member of an array',
    token({ claims: { scope: ['orders:read orders:write'] } }),
    {},
    'insufficient_scope',
    'needs orders:read, has orders:read orders:write; one member of an array has several scopes: have the issuer make each a member of its own',
  ],
  [
    'a shared secret',
    HS256,
    {},
    'algorithm_not_allowed',
    'alg is "HS256", which needs a shared secret: have the issuer sign with a key pair',
  ],
  [
    'an algorithm that the option leaves out',
    token(),
    { algorithms: ['RS256'] },
    'algorithm_not_allowed',
    'alg is "ES256"',
  ],
  ['no signature', UNSIGNED, {}, 'malformed_token', 'the signature is empty: the issuer has not signed the token'],
  [
    'another audience',
    token(),
    { audience: 'http://127.0.0.1:3000' },
    'wrong_audience',
    'aud is "https://api.test", expected "http://127.0.0.1:3000"',
  ],
  [
    'two keys and no kid',
    token(NO_KID),
    { keys: [KEYLESS, KEYLESS_OTHER] },
    'unknown_key',
    'the token has no kid, and none or several keys of the set are for ES256: have the issuer name the key',
  ],
  [
    'a key that the set lacks',
    token({ key: newKey('ES256', 'new') }),
    {},
    'unknown_key',
    'the key set has no key with the kid "new": it may be that of another realm or stage (jwksUri)',
  ],
  [
    'times in ms',
    token({ claims: { exp: (NOW + 600) * 1000, iat: NOW * 1000 } }),
    {},
    'not_yet_valid',
    'iat is 1798200000000 s ahead: times are in seconds (RFC 7519 section 2), not in ms',
  ],
  [
    'exp in ms',
    token({ claims: { exp: (NOW + 600) * 1000 } }),
    {},
    'lifetime_too_long',
    'exp - iat is 1798200600060 s, at most 86400 s are accepted: times are in seconds (RFC 7519 section 2), not in ms',
  ],
  [
    'a token of 60 days',
    token({ claims: { exp: NOW + 60 * 86_400 - 60 } }),
    {},
    'lifetime_too_long',
    'exp - iat is 5184000 s, at most 86400 s are accepted',
  ],
  [
    'an introspection response with sub only',
    'opaque-token',
    introspecting({ active: true, sub: 'pos-17', iat: NOW, exp: NOW + 600, aud: AUDIENCE, scope: 'orders:read' }),
    'invalid_claims',
    'the introspection response has no client_id: have the authorization server return it (optional in RFC 7662); with generationClaim: false and without clientIds, sub is enough',
  ],
])('the log says what is wrong with %s, and what to do', async (_what, raw, options, reason, detail) => {
  expect(await refusalOf(raw, options)).toEqual([reason, detail]);
});

it.each<readonly [what: string, options: Options, message: string]>([
  [
    'the URL of the metadata as issuer',
    { issuer: `${ISSUER}/.well-known/openid-configuration` },
    'option "issuer" must be the iss of the tokens, not the URL of the metadata, got "https://login.test/.well-known/openid-configuration"',
  ],
  [
    'a logger that is none',
    { logger: true as unknown as false },
    'option "logger" must be an object with the methods info, warn and error, or false, got true',
  ],
])('authenticate() refuses %s', (_what, options, message) => {
  expect(() => open(options)).toThrow(new TypeError(`authenticate(): ${message}`));
});

it('the advice about a signature that does not match names a new key under the old kid', () => {
  expect(REASONS.bad_signature.operator).toBe(
    'Check that the key set belongs to the issuer, and that a new key has a new kid. Many such requests can be an attack.',
  );
});

it('logger: false silences the gate', async () => {
  const spies = (['info', 'warn', 'error'] as const).map((name) => jest.spyOn(console, name));
  const { app, gate } = open({ logger: false });
  await request(app).get('/').set('Authorization', 'Bearer x').expect(401);
  await gate.close();
  for (const spy of spies) {
    expect(spy).not.toHaveBeenCalled();
    spy.mockRestore();
  }
});

it('a guard after an optional gate names its scopes to a caller without a token', async () => {
  const { app, gate } = open({ optional: true });
  const response = await request(app).get('/').expect(401);
  expect(response.headers['www-authenticate']).toBe('Bearer realm="api", scope="orders:read"');
  await gate.close();
});

describe('verify()', () => {
  const { gate, logger } = open({});
  afterAll(() => gate.close());
  const fetchRequest = (raw: string, path = '/orders?page=2') =>
    new Request(`https://api.test${path}`, { headers: { Authorization: raw } });

  it('decides about a request of the Fetch API as about one of node:http', async () => {
    expect(await gate.verify(fetchRequest(`Bearer ${token()}`))).toMatchObject({ clientId: 'pos-17' });
    const cases = [
      [fetchRequest(`Bearer ${token({ claims: { exp: 1 } })}`), 'expired'],
      [fetchRequest(`Bearer ${token()}, Bearer ${token()}`), 'malformed_authorization'],
      [fetchRequest(`Bearer ${token()}`, '/orders?access_token=x'), 'token_in_query'],
      [new Request('https://api.test/orders'), 'missing_token'],
    ] as const;
    for (const [given, reason] of cases) await expect(gate.verify(given)).rejects.toMatchObject({ reason });
    expect(logger.entries.at(-1)?.fields).toMatchObject({ method: 'GET', path: '/orders' });
  });

  it.each([
    ['the headers alone', new Headers({ Authorization: `Bearer ${token()}` }), 'an object'],
    ['undefined', undefined, 'undefined'],
    ['a token', token(), 'a string'],
  ])('says what it needs when it is given %s', async (_what, given, got) => {
    const failure = await gate.verify(given as unknown as Request).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(TypeError);
    const { message } = failure as TypeError;
    const start = 'verify(): expected a request of node:http or of the Fetch API, got ';
    expect([message.slice(0, start.length), message.slice(start.length)]).toEqual([start, got]);
    expect(message).not.toContain('eyJ');
  });
});
