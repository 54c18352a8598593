import { sign as signBytes } from 'node:crypto';
import request from 'supertest';
import type { Reason } from '../../src';
import { BASE_URL, boundToken, callerKey, dpopApp, proof, publicJwk, thumbprint } from '../support/dpop';
import type { ProofParts } from '../support/dpop';
import { remember } from '../support/gate-app';
import { AUDIENCE, hmacSigner, ISSUER, NOW, token } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';
import { rawServer } from '../support/raw-request';
import { expectRefusal } from '../support/refusals';

describe('a token that is bound to a key by DPoP', () => {
  it('is accepted with its proof, and again with another proof once it is known', async () => {
    const through = dpopApp();
    for (let use = 0; use < 3; use++) {
      const { body } = await through.send().expect(200);
      expect(body.auth.claims.cnf).toEqual({ jkt: thumbprint(callerKey()) });
    }
    expect(through.reached).toHaveLength(3);
  });

  it.each(['ES256', 'ES384', 'EdDSA', 'PS256', 'RS256'])('is accepted with a proof by %s', async (alg) => {
    const key = testKey(alg, `caller ${alg}`);
    const accessToken = boundToken(key);
    await dpopApp()
      .send({ token: accessToken, proof: proof({ key, accessToken }) })
      .expect(200);
  });

  it.each<[string, ProofParts]>([
    ['htu in another spelling of the same URL', { url: 'HTTPS://API.TEST:443/v1/%6frders' }],
    ['htu with query and fragment', { url: `${BASE_URL}/v1/orders?since=1#x` }],
    ['typ in another case', { header: { typ: 'DPoP+JWT' } }],
    ['claims that are not known', { claims: { exp: NOW - 60, nbf: NOW + 60, aud: 'x', extra: { a: 1 } } }],
    ['the oldest iat', { claims: { iat: NOW - 69.999 } }],
    ['the latest iat', { claims: { iat: NOW + 10 } }],
    ['a jti of 512 characters', { claims: { jti: 'x'.repeat(512) } }],
  ])('is accepted with %s', async (_what, parts) => {
    await dpopApp()
      .send({ proof: proof(parts) })
      .expect(200);
  });

  it('is accepted with a query in the URL of the request, which htu leaves out', async () => {
    await dpopApp().send({ path: '/v1/orders?since=2026-01-01' }).expect(200);
  });

  it('is accepted under the path of baseUrl, with its scheme in any case', async () => {
    const through = dpopApp({ baseUrl: `${BASE_URL}/shop/` });
    const sent = { Authorization: `dpop ${boundToken()}`, DPoP: proof({ url: `${BASE_URL}/shop/v1/orders` }) };
    await request(through.app).get('/v1/orders').set(sent).expect(200);
  });

  it('has the origin of resource as its baseUrl by default', async () => {
    const through = dpopApp({ baseUrl: undefined }, { resource: `${BASE_URL}/v1` });
    await through.send().expect(200);
  });

  it.each<[string, ProofParts, string]>([
    ['another method', { method: 'POST' }, 'htm is not the method of the request'],
    ['a method in another case', { method: 'get' }, 'htm is not the method of the request'],
    ['another path', { url: `${BASE_URL}/v1/refunds` }, 'htu is not https://api.test/v1/orders'],
    ['another origin', { url: 'https://other.test/v1/orders' }, 'htu is not https://api.test/v1/orders'],
    ['another scheme', { url: 'http://api.test/v1/orders' }, 'htu is not https://api.test/v1/orders'],
    ['a path without an origin', { url: '/v1/orders' }, 'htu is not https://api.test/v1/orders'],
    ['a slash more', { url: `${BASE_URL}/v1/orders/` }, 'htu is not https://api.test/v1/orders'],
    [
      'another access token',
      { accessToken: boundToken(callerKey(), { jti: 'another' }) },
      'ath is not the hash of the access token',
    ],
    ['no ath', { claims: { ath: undefined } }, 'ath is missing or not a string'],
    ['an ath that is not a string', { claims: { ath: 1 } }, 'ath is missing or not a string'],
    ['no htm', { claims: { htm: undefined } }, 'htm is missing or not a string'],
    ['an htm that is a list', { claims: { htm: ['GET'] } }, 'htm is missing or not a string'],
    ['no htu', { claims: { htu: undefined } }, 'htu is missing or not a string'],
    ['no jti', { claims: { jti: undefined } }, 'jti is missing or not a string'],
    ['an empty jti', { claims: { jti: '' } }, 'jti is missing or not a string'],
    ['a jti of 513 characters', { claims: { jti: 'x'.repeat(513) } }, 'jti is longer than 512 characters'],
    ['no iat', { claims: { iat: undefined } }, 'iat is not a number'],
    ['an iat that is a string', { claims: { iat: String(NOW) } }, 'iat is not a number'],
    ['an iat that is too old', { claims: { iat: NOW - 70 } }, 'iat is too old'],
    ['an iat to come', { claims: { iat: NOW + 10.001 } }, 'iat is in the future'],
    ['a nonce that is not a string', { claims: { nonce: 1 } }, 'nonce is missing or not a string'],
    ['no typ', { header: { typ: undefined } }, 'wrong_type'],
    ['the typ of an access token', { header: { typ: 'at+jwt' } }, 'wrong_type'],
    ['crit', { header: { crit: ['x'] } }, 'unsupported_critical_header'],
    ['alg none', { header: { alg: 'none' }, sign: () => Buffer.from('x') }, 'algorithm_not_allowed'],
    [
      'an HMAC with the public key',
      { header: { alg: 'HS256' }, sign: hmacSigner(JSON.stringify(publicJwk(callerKey()))) },
      'algorithm_not_allowed',
    ],
    ['an algorithm that does not fit the key', { header: { alg: 'ES384' } }, 'alg does not fit the key'],
    ['no jwk', { header: { jwk: undefined } }, 'jwk: it is not an object'],
    ['a jwk that is a string', { header: { jwk: 'x' } }, 'jwk: it is not an object'],
    [
      'a private key',
      { header: { jwk: callerKey().privateKey.export({ format: 'jwk' }) } },
      'jwk: it is a private key',
    ],
    ['a secret key', { header: { jwk: { kty: 'oct', k: 'AAAA' } } }, 'jwk: its kty must be RSA, EC or OKP'],
    ['a key off its curve', { header: { jwk: { ...publicJwk(callerKey()), x: 'AAAA' } } }, 'jwk: it is not a key'],
    ['the key of another', { header: { jwk: publicJwk(testKey('ES256', 'another')) } }, 'bad_signature'],
    ['a DER signature', { sign: (input) => signBytes('sha256', input, callerKey().privateKey) }, 'bad_signature'],
  ])('is refused with a proof that has %s', async (_what, parts, detail) => {
    const through = dpopApp();
    expectRefusal(await through.send({ proof: proof(parts) }), 'invalid_dpop_proof', through, { dpop: 'used' });
    expect(through.log.at('info').at(-1)?.fields['detail']).toBe(detail);
  });

  it.each<[string, string | null]>([
    ['no proof', null],
    ['an empty one', ''],
    ['no JWT', 'x.y'],
    ['two of them in one header', `${proof()}, ${proof()}`],
    ['an access token in its place', boundToken()],
    ['more than a proof', `${proof()}x`],
  ])('is refused with %s', async (_what, sent) => {
    const through = dpopApp();
    expectRefusal(await through.send({ proof: sent }), 'invalid_dpop_proof', through, { dpop: 'used' });
  });

  it('is refused with two DPoP headers, even the same ones', async () => {
    const through = dpopApp();
    const server = await rawServer(through.app);
    const line = `DPoP: ${proof()}`;
    const head = ['GET /v1/orders HTTP/1.1', `Authorization: DPoP ${boundToken()}`];
    expect((await server.send([...head, line])).status).toBe(200);
    const response = await server.send([...head, line.replace('DPoP', 'dpop'), line]);
    expect([response.status, response.body.code]).toEqual([401, 'invalid_dpop_proof']);
    await server.close();
  });

  it('is refused on a path with dot segments, which routers and URL parsers read differently', async () => {
    const through = dpopApp();
    const server = await rawServer(through.app);
    for (const path of ['/v1/x/../orders', '/v1/x/%2e%2E/orders', '/v1/./orders']) {
      const head = [`GET ${path} HTTP/1.1`, `Authorization: DPoP ${boundToken()}`, `DPoP: ${proof()}`];
      expect((await server.send(head)).body.code).toBe('invalid_dpop_proof');
      // Nothing that cannot be compared is the same.
      const vague = [...head.slice(0, 2), `DPoP: ${proof({ url: 'x' })}`];
      expect((await server.send(vague)).body.code).toBe('invalid_dpop_proof');
    }
    await server.close();
  });

  it('is refused with a good proof of another key', async () => {
    const through = dpopApp();
    const another = proof({ key: newKey() });
    expectRefusal(await through.send({ proof: another }), 'wrong_binding', through, { dpop: 'used' });
  });

  it('is refused as a bearer token, also once it is known, and with a proof', async () => {
    const through = dpopApp();
    await through.send().expect(200);
    await through.send().expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(boundToken()), 'sender_constrained', through, { dpop: 'accepted' });
    const response = await through.get(boundToken()).set('DPoP', proof());
    expectRefusal(response, 'sender_constrained', through, { dpop: 'accepted' });
    expect(through.log.at('info').at(-1)?.fields['detail']).toBe('the token came with the Bearer scheme');
  });

  it('may have a proof as early as the largest tolerance of the issuers', async () => {
    const issuer = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()) };
    const issuers = [issuer, { ...issuer, issuer: 'https://other.test', clockToleranceSeconds: 30 }];
    const through = dpopApp({}, { issuers });
    await through.send({ proof: proof({ claims: { iat: NOW + 30 } }) }).expect(200);
    await through.send({ proof: proof({ claims: { iat: NOW + 30.001 } }) }).expect(401);
  });

  it('is refused where it is bound in another way as well', async () => {
    const through = dpopApp();
    const accessToken = boundToken(callerKey(), { cnf: { jkt: thumbprint(callerKey()), 'x5t#S256': 'x' } });
    expectRefusal(await through.send({ token: accessToken }), 'sender_constrained', through, { dpop: 'used' });
  });

  it.each([1, '', ['x'], { x: 1 }])('is refused as malformed with the thumbprint %j', async (jkt) => {
    const through = dpopApp();
    const accessToken = token({ claims: { cnf: { jkt } } });
    expectRefusal(await through.send({ token: accessToken }), 'invalid_claims', through, { dpop: 'used' });
  });

  it('is refused for the token first, whatever the proof is', async () => {
    const through = dpopApp();
    const accessToken = boundToken(callerKey(), { exp: NOW - 60 });
    const response = await through.send({ token: accessToken, proof: 'x' });
    expectRefusal(response, 'expired', through, { dpop: 'used' });
  });

  it('lacks a scope like any other token', async () => {
    const through = dpopApp();
    const accessToken = boundToken(callerKey(), { scope: 'menus:read' });
    expectRefusal(await through.send({ token: accessToken }), 'insufficient_scope', through, {
      dpop: 'used',
      scopes: ['orders:read'],
    });
  });
});

describe('a token that is not bound, where DPoP is on', () => {
  it('is accepted as a bearer token, and refused with the DPoP scheme', async () => {
    const through = dpopApp();
    await remember(through, token());
    through.reached.length = 0;
    const response = await through.send({ token: token(), proof: proof({ accessToken: token() }) });
    expectRefusal(response, 'binding_required', through, { dpop: 'used' });
  });

  it('is refused where a binding is required', async () => {
    const through = dpopApp({ required: true });
    for (let use = 0; use < 3; use++) {
      expectRefusal(await through.get(token()), 'binding_required', through, { dpop: 'used' });
    }
    await through.send().expect(200);
  });
});

describe('challenges where DPoP is on', () => {
  it('name both schemes without a token, only DPoP where it is required', async () => {
    const through = dpopApp();
    expectRefusal(await through.get(), 'missing_token', through, { dpop: 'accepted' });
    const strict = dpopApp({ required: true });
    expectRefusal(await strict.get(), 'missing_token', strict, { dpop: 'used' });
  });

  it('are in the headers of the error that the app handles', async () => {
    const through = dpopApp({}, { refusals: 'next' });
    const response = await through.send({ proof: null });
    expect(response.headers['www-authenticate']).toMatch(/^DPoP realm="api", error="invalid_dpop_proof"/);
    expect(response.headers['www-authenticate']).toMatch(/, algs="ES256 ES384 EdDSA PS256 RS256"$/);
  });

  it('keep the reason of a bad token private in production, and that of a bad proof public', async () => {
    const through = dpopApp({}, { exposeReasons: false });
    const codeOf = async (sent: Parameters<typeof through.send>[0]): Promise<Reason> =>
      (await through.send(sent)).body.code;
    expect(await codeOf({ proof: proof({ key: newKey() }) })).toBe('invalid_token');
    expect(await codeOf({ proof: null })).toBe('invalid_dpop_proof');
  });
});

it('the DPoP scheme is any other scheme where DPoP is off', async () => {
  const through = dpopApp();
  const off = dpopApp({}, { dpop: undefined });
  expectRefusal(await off.send(), 'missing_token', { ...through, reached: [], log: off.log });
});
