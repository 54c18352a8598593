import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import request from 'supertest';
import { authenticate, requireScope } from '../../src/gate/index';
import type { AuthenticateOptions } from '../../src/gate/index';
import { AUDIENCE, base64url, ISSUER, NOW, NOW_MS, token } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';
import { recordingLogger } from '../support/log';
import { messagesIn } from '../support/messages';

/*
 * What operators read when a configuration or a token is wrong: what it was, what is expected, what to do. The texts are in
 * docs/maintainers/messages.md. They may change; each must go on saying these three.
 */

type Options = Partial<AuthenticateOptions>;

const { kid: _kid, ...KEYLESS } = testKey().jwk;
const { kid: _other, ...KEYLESS_OTHER } = newKey().jwk;
const NO_KID = { header: { kid: undefined } };
const HS256_INPUT = `${base64url('{"alg":"HS256","typ":"at+jwt"}')}.${base64url(JSON.stringify({ iss: ISSUER }))}`;
const HS256 = `${HS256_INPUT}.${createHmac('sha256', 'secret').update(HS256_INPUT).digest('base64url')}`;
const OF_PLATFORM = `${base64url('{"alg":"HS256","typ":"JWT"}')}.${base64url('{"iss":"https://x.scm.azurewebsites.net"}')}.AAAA`;
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
async function refusalOf(raw: string, options: Options, headers?: Record<string, string>): Promise<string> {
  const { app, gate, logger } = open(options);
  await request(app)
    .get('/')
    .set(headers ?? { Authorization: `Bearer ${raw}` });
  await gate.close();
  const refusal = logger.entries.find(({ message }) => message === 'request refused');
  return [refusal?.fields['reason'], refusal?.fields['detail']].filter(Boolean).join(': ');
}

describe('the log of a gate', () => {
  const texts = messagesIn('In the log of a gate');
  const cases: Readonly<Record<string, readonly [raw: string, options?: Options, headers?: Record<string, string>]>> = {
    'an ID token': [token({ claims: { at_hash: 'x' } })],
    'an ID token of Keycloak': [
      token({ header: { typ: 'JWT' }, claims: { typ: 'ID', azp: 'shop' } }),
      { preset: 'keycloak' },
    ],
    'an ID token of Cognito': [
      token({ header: { typ: undefined }, claims: { token_use: 'id' } }),
      { preset: 'cognito' },
    ],
    'a token of another vendor than the preset is for': [token(), { preset: 'keycloak' }],
    'a JWT where RFC 9068 is expected': [token({ header: { typ: 'JWT' } })],
    'a token without typ': [token({ header: { typ: undefined } })],
    'scopes joined by commas': [token({ claims: { scope: 'orders:read,orders:write' } })],
    'scopes in one member of an array': [token({ claims: { scope: ['orders:read orders:write'] } })],
    'a shared secret (HS256)': [HS256],
    'an algorithm that the option leaves out': [token(), { algorithms: ['RS256'] }],
    'no signature': [UNSIGNED],
    'another audience': [token(), { audience: 'http://127.0.0.1:3000' }],
    'two keys without kid': [token(NO_KID), { keys: [KEYLESS, KEYLESS_OTHER] }],
    'a key that the set lacks': [token({ key: newKey('ES256', 'new') })],
    'a new key under the old kid': [token({ key: newKey('ES256', testKey().kid) })],
    'a clock that is ahead': [token({ claims: { iat: NOW + 3600, exp: NOW + 4000 } })],
    'times in ms': [token({ claims: { exp: (NOW + 600) * 1000, iat: NOW * 1000 } })],
    'exp in ms': [token({ claims: { exp: (NOW + 600) * 1000 } })],
    'a token of 60 days': [token({ claims: { exp: NOW + 60 * 86_400 - 60 } })],
    'an introspection response with sub only': [
      'opaque-token',
      introspecting({ active: true, sub: 'pos-17', iat: NOW, exp: NOW + 600, aud: AUDIENCE, scope: 'orders:read' }),
    ],
    'the text undefined': ['undefined'],
    'the text of an object': ['[object Object]'],
    'a template that nothing has filled in': ['${token}'],
    'another scheme': ['', {}, { Authorization: 'Basic cG9zOnNlY3JldA==' }],
    'a token without a scheme': ['', {}, { Authorization: token() }],
    'a token in a cookie': ['', {}, { Cookie: `theme=dark; access_token=${token()}` }],
    'a token in another header': ['', {}, { 'X-Access-Token': token() }],
    'an encrypted token': ['a.b.c.d.e'],
    'a signature that Google has removed': [token().replace(/[^.]*$/, 'SIGNATURE_REMOVED_BY_GOOGLE')],
    'a token of Azure Static Web Apps': [OF_PLATFORM],
    'a stamped number as text': [token({ claims: { generation: '1798199940000' } })],
  };

  it('has a text for every case', () => {
    expect(Object.keys(texts)).toEqual(Object.keys(cases));
  });

  it.each(Object.entries(cases))(
    'says what is wrong and what to do: %s',
    async (name, [raw, options = {}, headers]) => {
      expect(await refusalOf(raw, options, headers)).toBe(texts[name]);
    },
  );
});

describe('authenticate()', () => {
  const texts = messagesIn('From authenticate() and verify()');

  it.each<readonly [name: string, options: Options]>([
    ['the URL of the metadata as issuer', { issuer: `${ISSUER}/.well-known/openid-configuration` }],
    ['a logger that is none', { logger: true as unknown as false }],
    ['a shared secret as an option', { secret: 'geheim' } as Options],
  ])('refuses %s', (name, options) => {
    expect(() => open(options)).toThrow(new TypeError(texts[name]));
  });

  it('is silent with logger: false', async () => {
    const spies = (['info', 'warn', 'error'] as const).map((name) => jest.spyOn(console, name));
    const { app, gate } = open({ logger: false });
    await request(app).get('/').set('Authorization', 'Bearer x').expect(401);
    await gate.close();
    for (const spy of spies) {
      expect(spy).not.toHaveBeenCalled();
      spy.mockRestore();
    }
    expect(texts['logger: false']).toBe('accepted; nothing is logged');
  });

  it('does not see a route that is mounted before it: such a route is open', async () => {
    const { gate, logger } = open({ unguarded: 'refuse' });
    const app = express()
      .get('/early', (_req, res) => void res.json('open'))
      .use(gate)
      .get('/late', (_req, res) => void res.json('never sent'));
    await request(app).get('/early').expect(200);
    expect(logger.entries).toEqual([]);
    await request(app).get('/late').set('Authorization', `Bearer ${token()}`).expect(500);
    await gate.close();
    expect(readFileSync(join(__dirname, '../../README.md'), 'utf8').replaceAll('\n', ' ')).toContain(
      texts['a gate mounted after routes'],
    );
  });

  it('gives the scopes of a guard to a caller without a token, also after an optional gate', async () => {
    const { app, gate } = open({ optional: true });
    const response = await request(app).get('/').expect(401);
    expect(response.headers['www-authenticate']).toBe(texts['no token for a guard behind an optional gate']);
    await gate.close();
  });
});

describe('verify()', () => {
  const { gate, logger } = open({});
  afterAll(() => gate.close());
  const fetchRequest = (raw: string, path = '/orders?page=2') =>
    new Request(`https://api.test${path}`, { headers: { Authorization: raw } });

  const texts = messagesIn('From authenticate() and verify()');

  it('decides about a request of the Fetch API as about one of node:http', async () => {
    expect(texts['verify() given a request of the Fetch API']).toBe('accepted');
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
    ['the headers alone', new Headers({ Authorization: `Bearer ${token()}` })],
    ['undefined', undefined],
    ['a token', token()],
  ])('says what it needs when it is given %s', async (what, given) => {
    const failure = await gate.verify(given as unknown as Request).catch((error: unknown) => error);
    expect(failure).toEqual(new TypeError(texts[`verify() given ${what}`]));
    expect((failure as TypeError).message).not.toContain('eyJ');
  });
});
