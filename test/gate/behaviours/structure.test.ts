import { gateApp, remember } from '../../support/gate-app';
import type { GateApp } from '../../support/gate-app';
import { base64url, goodClaims, hmacSigner, token } from '../../support/issuer';
import type { TokenParts } from '../../support/issuer';
import { jwks, newKey, testKey } from '../../support/keys';
import type { TestKey } from '../../support/keys';
import { expectRefusal, expectNoTokenLeak } from '../../support/refusals';
import { explain } from '../../../src/gate';
import { eventually } from '../../support/key-server';
import { remoteGate } from '../../support/remote-gate';
import { NODE_REFUSES_MANY_HEADERS } from '../hostile/support/node-version';
import { rawServer } from '../../support/raw-request';
import type { RawServer } from '../../support/raw-request';

const ES = testKey('ES256');
const RS = testKey('RS256');
/** The same key material under another algorithm name. */
const as = (key: TestKey, alg: string): TestKey => ({ ...key, alg, jwk: { ...key.jwk, alg } });

describe('signature: accepted algorithms', () => {
  it.each(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'])('accepts %s', async (alg) => {
    const key = as(RS, alg);
    await gateApp({ keys: jwks(key) })
      .get(token({ key }))
      .expect(200);
  });

  it.each(['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'])('accepts %s', async (alg) => {
    const key = testKey(alg);
    await gateApp({ keys: jwks(key) })
      .get(token({ key }))
      .expect(200);
  });

  it.each([
    ['Ed25519', 'EdDSA'],
    ['EdDSA', 'Ed25519'],
  ])('accepts alg %s with a key, and an option, that say %s (RFC 9864)', async (alg, published) => {
    const key = testKey(published);
    const through = gateApp({ keys: jwks(key), algorithms: [published as 'EdDSA'] });
    await through.get(token({ key, header: { alg } })).expect(200);
  });

  it('accepts a key without alg, use and key_ops for every algorithm of its type', async () => {
    const { alg: _alg, use: _use, ...bare } = RS.jwk;
    const through = gateApp({ keys: [bare] });
    await through.get(token({ key: RS })).expect(200);
    await through.get(token({ key: as(RS, 'PS384') })).expect(200);
  });

  it('refuses an algorithm that `algorithms` does not list, before it looks for a key', async () => {
    const through = gateApp({ keys: jwks(ES, RS), algorithms: ['RS256'] });
    await through.get(token({ key: RS })).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(token({ key: ES, header: { kid: 'nowhere' } })), 'algorithm_not_allowed', through);
  });
});

describe('signature: HMAC with a published key (RFC 8725 section 2.1)', () => {
  it('makes no key set call for HS256', async () => {
    const fetch = jest.fn(() => Promise.resolve(Response.json(jwks(RS))));
    const through = gateApp({ jwksUri: 'https://login.test/jwks', fetch });
    await through.gate.ready();
    const forged = { key: RS, header: { alg: 'HS256', kid: 'unknown' }, sign: hmacSigner('x') };
    expectRefusal(await through.get(token(forged)), 'algorithm_not_allowed', through);
    expect(fetch).toHaveBeenCalledTimes(1);
    await through.gate.close();
  });
});

describe('signature: the key must fit the algorithm (RFC 7515 section 10.7, RFC 8725 section 3.1)', () => {
  it('distinguishes an RSA and an EC key of the same kid by the algorithm', async () => {
    const [rsa, ec] = [testKey('RS256', 'same'), testKey('ES256', 'same')];
    const through = gateApp({ keys: jwks(rsa, ec) });
    await through.get(token({ key: rsa })).expect(200);
    await through.get(token({ key: ec })).expect(200);
    through.reached.length = 0;
    const crossed = token({ key: ec, header: { alg: 'RS256' } });
    expectRefusal(await through.get(crossed), 'bad_signature', through);
  });
});

describe('signature: keys in the token (RFC 8725 section 3.10)', () => {
  const own = newKey('ES256', 'own');
  it.each<[string, Record<string, unknown>]>([
    ['jwk', { jwk: own.jwk }],
    ['jku', { jku: 'https://evil.test/jwks' }],
    ['x5u', { x5u: 'https://evil.test/cert' }],
    ['x5c', { x5c: ['MIIB'] }],
  ])('never uses %s', async (_name, header) => {
    const fetch = jest.fn(() => Promise.resolve(Response.json(jwks(ES))));
    const through = gateApp({ jwksUri: 'https://login.test/jwks', fetch });
    await through.gate.ready();
    expectRefusal(await through.get(token({ key: own, header: { ...header, kid: ES.kid } })), 'bad_signature', through);
    expectRefusal(await through.get(token({ key: own, header })), 'unknown_key', through);
    expect(new Set(fetch.mock.calls.map(([url]: unknown[]) => url))).toEqual(new Set(['https://login.test/jwks']));
    await through.gate.close();
  });
});

const KEY = testKey();

describe('requests that overlap', () => {
  it("never get each other's result while the first key fetch is slow", async () => {
    let release = (): void => {};
    const through = await remoteGate([KEY]);
    through.server.responses.set('/jwks', (res) => void (release = () => res.end(JSON.stringify({ keys: [KEY.jwk] }))));

    const clients = Array.from({ length: 12 }, (_, index) => `client-${index}`);
    const forged = newKey('ES256', KEY.kid);
    const requests = clients.flatMap((client_id, index) => [
      through.get(through.token({ key: KEY, claims: { client_id, sub: client_id } })),
      through.get(through.token({ key: index % 2 ? forged : KEY, claims: { client_id, aud: 'other' } })),
    ]);
    const responses = Promise.all(requests.map((each) => each.then((response) => response)));
    await eventually(() => through.presented.length === requests.length && through.server.keyFetches === 1);
    release();

    const outcomes = (await responses).map(({ status, body }) => [status, body.code ?? body.auth.clientId]);
    const expected = clients.flatMap((client, index) => [
      [200, client],
      [401, index % 2 ? 'bad_signature' : 'wrong_audience'],
    ]);
    expect(outcomes).toEqual(expected);
    expect(through.reached).toHaveLength(clients.length);
    await through.stop();
  });

  it('never accept a forged token together with the good one whose signature it has, cached or not', async () => {
    const through = gateApp();
    const outcomes = async (...tokens: readonly string[]): Promise<unknown[]> => {
      const explained = await Promise.all(tokens.map((raw) => explain(raw, { gate: through.gate })));
      return explained.map(({ auth, checks }) => auth?.clientId ?? checks.find(({ reason }) => reason)?.reason);
    };
    for (let round = 0; round < 20; round++) {
      const good = token({ claims: { jti: `t${round}` } });
      const [header, , signature] = good.split('.');
      const payload = base64url(JSON.stringify({ ...goodClaims(), client_id: 'admin', jti: `t${round}` }));
      const forged = [header, payload, signature].join('.');
      expect(await outcomes(good, forged, good)).toEqual(['pos-17', 'bad_signature', 'pos-17']);
      expect(await outcomes(forged, good, forged)).toEqual(['bad_signature', 'pos-17', 'bad_signature']);
      await remember(through, good);
      expect((await through.get(forged)).body.code).toBe('bad_signature');
    }
  });

  it("never get each other's result once tokens are cached", async () => {
    const through = await remoteGate([KEY]);
    const tokens = ['a', 'b', 'c'].map((client_id) => through.token({ key: KEY, claims: { client_id } }));
    for (const each of tokens) await remember(through, each);
    const order = Array.from({ length: 30 }, (_, index) => index % 3);
    const responses = await Promise.all(order.map((index) => through.get(tokens[index])));
    expect(responses.map(({ body }) => body.auth.clientId)).toEqual(order.map((index) => ['a', 'b', 'c'][index]));
    await through.stop();
  });

  it('leave only req.auth on the request, nothing of passport', async () => {
    const through = await remoteGate([KEY], {
      routes: (app) =>
        void app.get('/v1/orders', (req, res) => {
          res.json(
            ['user', 'authInfo', 'login', 'logIn', 'isAuthenticated', '_passport', 'session'].filter(
              (name) => name in req,
            ),
          );
        }),
    });
    const response = await through.get(through.token({ key: KEY })).expect(200);
    expect(response.body).toEqual([]);
    await through.stop();
  });
});

const CLAIMS = JSON.stringify(goodClaims());
/** A signed token whose header or payload is these bytes. */
const signed = (parts: TokenParts): string => token(parts);

describe('structure: what a token may hold', () => {
  it('accepts a long token that stays below the bound', async () => {
    await gateApp()
      .get(token({ claims: { filler: 'x'.repeat(9_000) } }))
      .expect(200);
  });

  it('keeps unicode claims as they are', async () => {
    const claims = { store: 'Kaffeehaus zur Öse', tag: '☕ 𝄞', ключ: '値' };
    const response = await gateApp().get(token({ claims })).expect(200);
    expect(response.body.auth.claims).toMatchObject(claims);
  });

  it('treats __proto__ in a payload like any other claim', async () => {
    const payload = CLAIMS.replace('{', '{"__proto__":{"admin":true,"scope":"orders:read"},');
    const through = gateApp();
    await through.get(signed({ payload })).expect(200);
    const claims = through.decisions[0]?.auth?.claims ?? {};
    expect(Object.getPrototypeOf(claims)).toBeNull();
    expect(claims['admin']).toBeUndefined();
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
  });

  it.each(['iss', 'exp', 'scope'])('does not read %s from a prototype in the payload', async (name) => {
    const { [name]: hidden, ...rest } = goodClaims();
    const payload = JSON.stringify(rest).replace('{', `{"__proto__":${JSON.stringify({ [name]: hidden })},`);
    const through = gateApp();
    const response = await through.get(signed({ payload }));
    if (name === 'scope') expectRefusal(response, 'insufficient_scope', through, { scopes: ['orders:read'] });
    else expectRefusal(response, 'invalid_claims', through);
  });
});

const GOOD = token();
const OTHER = token({ claims: { jti: 'another' } });

describe('requests that no HTTP client would send', () => {
  let through: GateApp;
  let server: RawServer;

  beforeEach(async () => {
    through = gateApp();
    server = await rawServer(through.app);
  });
  afterEach(() => server.close());

  it.each([
    ['997 others', 997],
    ['1,995 others', 1_995],
  ])(
    'are refused with a second Authorization header after %s: Node drops it, or refuses first',
    async (_what, others) => {
      const response = await server.send([
        'GET /v1/orders HTTP/1.1',
        'Host: api.test',
        `Authorization: Bearer ${GOOD}`,
        ...Array<string>(others).fill('a:b'),
        `Authorization: Bearer ${OTHER}`,
      ]);
      if (!NODE_REFUSES_MANY_HEADERS) return expectRefusal(response, 'malformed_authorization', through);
      expect({ status: response.status, text: response.text }).toEqual({ status: 431, text: '' });
      expect({ seen: through.presented, decisions: through.decisions }).toEqual({ seen: [], decisions: [] });
    },
  );

  it('accepts as many headers as Node always keeps', async () => {
    const others = Array<string>(990).fill('a:b');
    const response = await server.send(['GET /v1/orders HTTP/1.1', `Authorization: Bearer ${GOOD}`, ...others]);
    expect(response.status).toBe(200);
  });

  it('responds to HEAD without a token with the headers of the refusal and no body', async () => {
    const response = await server.send(['HEAD /v1/orders HTTP/1.1']);
    expect({ status: response.status, text: response.text }).toEqual({ status: 401, text: '' });
    expect(response.headers['www-authenticate']).toBe('Bearer realm="api"');
  });

  it('responds to TRACE with a good token without repeating it', async () => {
    const response = await server.send(['TRACE /v1/orders HTTP/1.1', `Authorization: Bearer ${GOOD}`]);
    expect(response.status).toBe(404);
    expectNoTokenLeak(response, through);
  });
});
