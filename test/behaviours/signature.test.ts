import { createPublicKey, sign } from 'node:crypto';
import { gateApp, remember } from '../support/gate-app';
import { base64url, goodClaims, hmacSigner, signer, token } from '../support/issuer';
import type { TokenParts } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';
import type { TestKey } from '../support/keys';
import { expectRefusal } from '../support/refusals';
import { explain } from '../../src';
import type { Reason } from '../../src';
import { eventually } from '../support/key-server';
import { remoteGate } from '../support/remote-gate';

const ES = testKey('ES256');
const RS = testKey('RS256');
/** Order of P-256 (FIPS 186-4, D.1.2.3). */
const P256_ORDER = Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex');

/** The same key material under another algorithm name. */
const as = (key: TestKey, alg: string): TestKey => ({ ...key, alg, jwk: { ...key.jwk, alg } });

async function refuses(raw: string, reason: Reason, ...keys: readonly TestKey[]): Promise<void> {
  const through = gateApp({ keys: jwks(...(keys.length > 0 ? keys : [ES])) });
  expectRefusal(await through.get(raw), reason, through);
}

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
  const publicKey = createPublicKey(RS.privateKey);
  const secrets: readonly [string, string | Buffer][] = [
    ['PEM, SPKI', publicKey.export({ format: 'pem', type: 'spki' })],
    ['PEM, PKCS1', publicKey.export({ format: 'pem', type: 'pkcs1' })],
    ['DER', publicKey.export({ format: 'der', type: 'spki' })],
    ['the modulus', Buffer.from(String(RS.jwk['n']), 'base64url')],
    ['the JWK', JSON.stringify(RS.jwk)],
  ];
  it.each(secrets)('refuses HS256 with the public key as the secret: %s', async (_what, secret) => {
    const forged = token({ key: RS, header: { alg: 'HS256' }, sign: hmacSigner(secret) });
    await refuses(forged, 'algorithm_not_allowed', RS);
  });

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
  const rows: readonly [string, TokenParts, Reason, readonly TestKey[]][] = [
    ['RS256 for a key published for RS512', { key: RS }, 'algorithm_not_allowed', [as(RS, 'RS512')]],
    ['PS256 for a key published for RS256', { key: as(RS, 'PS256') }, 'algorithm_not_allowed', [RS]],
    ['PS384 for a key published for PS256', { key: as(RS, 'PS384') }, 'algorithm_not_allowed', [as(RS, 'PS256')]],
    ['ES384 for an ES256 key', { key: ES, header: { alg: 'ES384' } }, 'algorithm_not_allowed', [ES]],
    ['RS256 for an EC key', { key: ES, header: { alg: 'RS256' } }, 'algorithm_not_allowed', [ES]],
    ['EdDSA for an EC key', { key: ES, header: { alg: 'EdDSA' } }, 'algorithm_not_allowed', [ES]],
    ['ES256 for an RSA key', { key: RS, header: { alg: 'ES256' } }, 'algorithm_not_allowed', [RS]],
    ['another key with the same kid', { key: newKey('ES256', ES.kid) }, 'bad_signature', [ES]],
    ['another RSA key with the same kid', { key: newKey('RS256', RS.kid) }, 'bad_signature', [RS]],
    [
      'another Ed25519 key with the same kid',
      { key: newKey('EdDSA', 'ed') },
      'bad_signature',
      [testKey('EdDSA', 'ed')],
    ],
    ['a kid that is not in the set', { key: ES, header: { kid: 'other' } }, 'unknown_key', [ES]],
    ['a kid in another case', { key: ES, header: { kid: 'es256-1' } }, 'unknown_key', [ES]],
    [
      'PS256 signed with PKCS1 padding',
      { key: as(RS, 'PS256'), sign: signer('RS256', RS.privateKey) },
      'bad_signature',
      [as(RS, 'PS256')],
    ],
  ];
  it.each(rows)('refuses %s', (_what, parts, reason, keys) => refuses(token(parts), reason, ...keys));

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

describe('signature: its bytes', () => {
  const flip = (position: number) => (input: Buffer) => {
    const signature = signer('ES256', ES.privateKey)(input);
    signature[position] = (signature[position] ?? 0) ^ 1;
    return signature;
  };
  const half = (r: Buffer, s: Buffer) => () => Buffer.concat([r, s]);
  const zero = Buffer.alloc(32);
  const one = Buffer.concat([Buffer.alloc(31), Buffer.from([1])]);
  const valid = (input: Buffer): Buffer => signer('ES256', ES.privateKey)(input);
  const rows: readonly [string, (input: Buffer) => Buffer][] = [
    ['the first bit flipped', flip(0)],
    ['the last bit flipped', flip(63)],
    ['a signature over something else', () => valid(Buffer.from('something else'))],
    ['r and s of 0', half(zero, zero)],
    ['r of 0', half(zero, one)],
    ['s of 0', half(one, zero)],
    ['r of the order of the curve', half(P256_ORDER, one)],
    ['s of the order of the curve', half(one, P256_ORDER)],
    ['r and s of the order of the curve', half(P256_ORDER, P256_ORDER)],
    ['DER in place of raw r and s', (input) => sign('sha256', input, ES.privateKey)],
    ['a byte cut off', (input) => valid(input).subarray(0, 63)],
    ['a byte more', (input) => Buffer.concat([valid(input), Buffer.from([0])])],
    ['one byte', () => Buffer.from([0])],
    ['ES384 length', () => Buffer.alloc(96, 1)],
  ];
  it.each(rows)('refuses %s', (_what, sign) => refuses(token({ key: ES, sign }), 'bad_signature'));

  it('refuses claims that were changed after signing', async () => {
    const [header, , signature] = token().split('.');
    const payload = base64url(JSON.stringify({ ...goodClaims(), scope: 'orders:write payments:refund' }));
    await refuses(`${header}.${payload}.${signature}`, 'bad_signature');
  });

  it('refuses a header that was changed after signing', async () => {
    const [, payload, signature] = token().split('.');
    const header = base64url(JSON.stringify({ typ: 'AT+JWT', alg: 'ES256', kid: ES.kid }));
    await refuses(`${header}.${payload}.${signature}`, 'bad_signature');
  });
});

describe('signature: the order of the checks', () => {
  it.each<[string, TokenParts['claims']]>([
    ['expired', { exp: 1 }],
    ['of another issuer', { iss: 'https://evil.test' }],
    ['for another audience', { aud: 'other' }],
    ['of the wrong types', { exp: 'never', aud: 1 }],
    ['without generation', { generation: undefined }],
  ])('checks the signature before the claims: forged and %s is bad_signature', async (_what, claims) => {
    await refuses(token({ key: newKey('ES256', ES.kid), ...(claims && { claims }) }), 'bad_signature');
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

describe('signature: a kid with hostile characters', () => {
  it.each([
    ['CR LF', 'a\r\nSet-Cookie: x=1'],
    ['NUL', 'a\0b'],
    ['a quote', 'a", error="none'],
    ['a backslash', 'a\\'],
    ['an emoji', '🔑'],
    ['a lone surrogate', '\ud800'],
    ['a line separator', 'a\u2028b'],
  ])('responds to %s with one well-formed challenge and one log line', async (_what, kid) => {
    const through = gateApp();
    const response = await through.get(token({ header: { kid } }));
    expectRefusal(response, 'unknown_key', through);
    expect(response.headers['set-cookie']).toBeUndefined();
    expect(through.log.entries).toHaveLength(1);
    expect(JSON.stringify(through.log.entries)).not.toMatch(/[\r\n]/);
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
