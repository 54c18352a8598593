import { createHash } from 'node:crypto';
import express from 'express';
import type { Express, RequestHandler } from 'express';
import request from 'supertest';
import type { Test } from 'supertest';
import { requireAuthenticated } from '../../../src/gate';
import type { Reason } from '../../../src/gate';
import { BASE_URL, boundToken, callerKey, dpopApp, proof, thumbprint } from '../../support/dpop';
import { badProofs, goodProofs } from '../../support/dpop-cases';
import { gateApp, remember } from '../../support/gate-app';
import { AUDIENCE, ISSUER, NOW, token } from '../../support/issuer';
import { jwks, newKey, testKey } from '../../support/keys';
import { rawServer } from '../../support/raw-request';
import { expectRefusal } from '../../support/refusals';

const OTHER_TOKEN = token();

describe('a token that is bound to a key by DPoP', () => {
  it('is accepted with its proof, and again with another proof once it is known', async () => {
    const through = dpopApp();
    for (let use = 0; use < 3; use++) {
      const { body } = await through.send().expect(200);
      expect(body.auth.claims.cnf).toEqual({ jkt: thumbprint(callerKey()) });
    }
    expect(through.reached).toHaveLength(3);
  });

  it.each(['ES256', 'ES384', 'EdDSA', 'Ed25519', 'PS256', 'RS256'])('is accepted with a proof by %s', async (alg) => {
    const key = testKey(alg, `caller ${alg}`);
    const accessToken = boundToken(key);
    await dpopApp()
      .send({ token: accessToken, proof: proof({ key, accessToken }) })
      .expect(200);
  });

  it.each(goodProofs(BASE_URL, NOW))('is accepted with %s', async (_what, parts) => {
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

  it.each(badProofs(BASE_URL, NOW))('is refused with a proof that has %s', async (_what, parts, detail) => {
    const through = dpopApp();
    expectRefusal(await through.send({ proof: proof(parts) }), 'invalid_dpop_proof', through, { dpop: 'used', detail });
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
      // Two URLs that cannot be compared do not count as equal.
      const vague = [...head.slice(0, 2), `DPoP: ${proof({ url: 'x' })}`];
      expect((await server.send(vague)).body.code).toBe('invalid_dpop_proof');
    }
    await server.close();
  });

  it('is refused with a good proof of another key', async () => {
    const through = dpopApp();
    const another = proof({ key: newKey() });
    expectRefusal(await through.send({ proof: another }), 'wrong_binding', through, { dpop: 'used' });
    // Nothing is computed with it.
    const unsigned = proof({ key: newKey(), sign: () => Buffer.from('x') });
    expectRefusal(await through.send({ proof: unsigned }), 'wrong_binding', through, { dpop: 'used' });
  });

  it.each<[string, Record<string, string>, string]>([
    [
      'a modulus of 4104 bits',
      { n: Buffer.alloc(513, 0xff).toString('base64url'), e: 'AQAB' },
      'modulus has more than 4096 bits',
    ],
    [
      'an exponent of 2^32 + 1',
      { n: Buffer.alloc(256, 0xff).toString('base64url'), e: 'AQAAAAE' },
      'exponent is larger than 2^32',
    ],
  ])('is refused before anything is computed with an RSA key that has %s', async (_what, { n, e }, fault) => {
    const through = dpopApp();
    const jwk = { kty: 'RSA', n, e };
    const jkt = createHash('sha256')
      .update(JSON.stringify({ e, kty: 'RSA', n }))
      .digest('base64url');
    const accessToken = token({ claims: { cnf: { jkt } } });
    const sent = proof({ accessToken, header: { alg: 'RS256', jwk }, sign: () => Buffer.alloc(n?.length ?? 0) });
    expectRefusal(await through.send({ token: accessToken, proof: sent }), 'invalid_dpop_proof', through, {
      dpop: 'used',
      detail: `jwk: its ${fault}`,
    });
  });

  it('is refused with the proof of another token that begins with the same thousands of characters', async () => {
    const through = dpopApp();
    const claims = { cnf: { jkt: thumbprint(callerKey()) }, roles: 'r'.repeat(6_000) };
    const [accessToken, another] = [
      token({ claims: { ...claims, last: 1 } }),
      token({ claims: { ...claims, last: 2 } }),
    ];
    expect(another.slice(0, 6_000)).toBe(accessToken.slice(0, 6_000));
    const response = await through.send({ token: accessToken, proof: proof({ accessToken: another }) });
    expectRefusal(response, 'invalid_dpop_proof', through, {
      dpop: 'used',
      detail: 'ath is not the hash of the access token',
    });
    await through.send({ token: accessToken }).expect(200);
  });

  it('is refused on a path that a URL parser reads as the one in the proof, and a router as another', async () => {
    const routes = (app: Express, reach: RequestHandler): void => void app.use('/v1', requireAuthenticated(), reach);
    const through = dpopApp({}, { routes });
    const server = await rawServer(through.app);
    const send = (target: string, url = `${BASE_URL}/v1/orders`): ReturnType<typeof server.send> =>
      server.send([`GET ${target} HTTP/1.1`, `Authorization: DPoP ${boundToken()}`, `DPoP: ${proof({ url })}`]);
    for (const target of ['/v1/x\\..\\orders', '/v1/orders#x', '/v1/%6Frders', '/v1/%6frders?x']) {
      const { status, body } = await send(target);
      expect([target, status, body.code]).toEqual([target, 401, 'invalid_dpop_proof']);
    }
    expect(through.reached).toEqual([]);
    // A client that sends the path in such a spelling signs it in the same.
    expect((await send('/v1/%6frders', `${BASE_URL}/v1/%6Frders`)).status).toBe(200);
    expect(through.reached).toEqual(['GET /%6frders']);
    await server.close();
  });

  it.each([
    ['a token in it', `/v1/${OTHER_TOKEN}?access_token=${OTHER_TOKEN}`, `/v1/[${OTHER_TOKEN.length}]`],
    ['characters that move the cursor', '/v1/a\u009b2J\u0085forged', '/v1/a\\u009b2J\\u0085forged'],
    ['another origin', 'https://other.test/v1/orders', '/v1/orders'],
  ])('is refused with a log line that shows a path with %s as it may be shown', async (_what, target, shown) => {
    const through = dpopApp();
    const app = express().use((req, res) => {
      req.originalUrl = target;
      through.app(req, res);
    });
    const sent = { Authorization: `DPoP ${boundToken()}`, DPoP: proof() };
    expectRefusal(await request(app).get('/v1/orders').set(sent), 'invalid_dpop_proof', through, {
      dpop: 'used',
      detail: `htu is not ${BASE_URL}${shown}`,
    });
  });

  it('is refused where the thumbprint in the token differs in case only', async () => {
    const through = dpopApp();
    const jkt = thumbprint(callerKey());
    const swapped = jkt.replace(/[a-z]/i, (letter) => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()));
    const accessToken = boundToken(callerKey(), { cnf: { jkt: swapped } });
    const response = await through.send({ token: accessToken, proof: proof({ accessToken }) });
    expectRefusal(response, 'wrong_binding', through, { dpop: 'used' });
  });

  it.each(['head', 'post'] as const)('needs a proof for each %s too, also once it is known', async (method) => {
    const through = dpopApp({}, { routes: (app, reach) => void app.use('/v1', requireAuthenticated(), reach) });
    const agent = request(through.app);
    const send = (sent: string): Test => {
      const test = method === 'head' ? agent.head('/v1/orders') : agent.post('/v1/orders');
      return test.set({ Authorization: `DPoP ${boundToken()}`, DPoP: sent });
    };
    const good = (): string => proof({ method: method.toUpperCase() });
    for (let use = 0; use < 3; use++) expect((await send(good())).status).toBe(200);
    through.reached.length = 0;
    expect((await send(proof())).status).toBe(401);
    expect((await send('x')).status).toBe(401);
    expect(through.reached).toEqual([]);
  });

  it('is refused as a bearer token, also once it is known, and with a proof', async () => {
    const through = dpopApp();
    await through.send().expect(200);
    await through.send().expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(boundToken()), 'sender_constrained', through, { dpop: 'accepted' });
    const response = await through.get(boundToken()).set('DPoP', proof());
    expectRefusal(response, 'sender_constrained', through, {
      dpop: 'accepted',
      detail: 'the token came with the Bearer scheme',
    });
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
    const response = await through.send({ token: token(), proof: proof({ accessToken: token() }) });
    expectRefusal(response, 'binding_required', through, { dpop: 'used' });
  });

  it('is refused where a binding is required', async () => {
    const through = dpopApp({}, { possessionRequired: true });
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
    const strict = dpopApp({}, { possessionRequired: true });
    expectRefusal(await strict.get(), 'missing_token', strict, { dpop: 'used' });
  });

  it('are in the headers of the error that the app handles', async () => {
    const through = dpopApp({}, { refusals: 'next' });
    const response = await through.send({ proof: null });
    expect(response.headers['www-authenticate']).toMatch(/^DPoP realm="api", error="invalid_dpop_proof"/);
    expect(response.headers['www-authenticate']).toMatch(/, algs="ES256 ES384 EdDSA Ed25519 PS256 RS256"$/);
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
  const off = gateApp();
  const sent = request(off.app).get('/v1/orders').set('Authorization', `DPoP ${boundToken()}`).set('DPoP', proof());
  expectRefusal(await sent, 'missing_token', { ...through, reached: [], log: off.log });
});
