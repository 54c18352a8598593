import { createHash } from 'node:crypto';
import request from 'supertest';
import type { Test } from 'supertest';
import { requireAuthenticated } from '../../../src/gate';
import type { Reason } from '../../../src/gate';
import { BASE_URL, boundToken, callerKey, dpopApp, proof, thumbprint } from '../../support/dpop';
import type { DpopApp } from '../../support/dpop';
import { badProofs, goodProofs } from '../../support/dpop-cases';
import { gateApp, remember } from '../../support/gate-app';
import { AUDIENCE, ISSUER, NOW, token } from '../../support/issuer';
import type { Members } from '../../support/issuer';
import { jwks, newKey, testKey } from '../../support/keys';
import { rawServer } from '../../support/raw-request';
import { expectRefusal } from '../../support/refusals';
import type { RefusalDetails } from '../../support/refusals';

const JKT = thumbprint(callerKey());
const NOT_BOUND = token();

describe('a token that is bound to a key by DPoP is accepted', () => {
  it('with its proof, and again with another proof once it is known', async () => {
    const through = dpopApp();
    for (let use = 0; use < 3; use++) {
      const { body } = await through.send().expect(200);
      expect(body.auth.claims.cnf).toEqual({ jkt: JKT });
    }
    expect(through.reached).toHaveLength(3);
  });

  it('where cnf has members that are not understood too (RFC 7800 section 3.1)', async () => {
    const through = dpopApp();
    const cnf = { 'urn:example:device': { id: 17 }, x5t: 'x', jkt: JKT };
    const accessToken = boundToken(callerKey(), { cnf });
    await through.send({ token: accessToken }).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(accessToken), 'sender_constrained', through, { dpop: 'accepted' });
  });

  it.each(['ES256', 'ES384', 'EdDSA', 'Ed25519', 'PS256', 'RS256'])('with a proof by %s', async (alg) => {
    const key = testKey(alg, `caller ${alg}`);
    const accessToken = boundToken(key);
    const sent = { token: accessToken, proof: proof({ key, accessToken }) };
    await dpopApp().send(sent).expect(200);
  });

  it.each(goodProofs(BASE_URL, NOW))('with %s', async (_what, parts) => {
    const sent = { proof: proof(parts) };
    await dpopApp().send(sent).expect(200);
  });

  it('under the path of baseUrl, with its scheme in any case', async () => {
    const through = dpopApp({ baseUrl: `${BASE_URL}/shop/` });
    const sent = { Authorization: `dpop ${boundToken()}`, DPoP: proof({ url: `${BASE_URL}/shop/v1/orders` }) };
    await request(through.app).get('/v1/orders').set(sent).expect(200);
  });

  it('at the origin of resource by default', async () => {
    const through = dpopApp({ baseUrl: undefined }, { resource: `${BASE_URL}/v1` });
    await through.send().expect(200);
  });

  it('with a proof as early as the largest tolerance of the issuers', async () => {
    const issuer = { issuer: ISSUER, audience: AUDIENCE, keys: jwks(testKey()) };
    const issuers = [issuer, { ...issuer, issuer: 'https://other.test', clockToleranceSeconds: 30 }];
    const through = dpopApp({}, { issuers });
    await through.send({ proof: proof({ claims: { iat: NOW + 30 } }) }).expect(200);
    await through.send({ proof: proof({ claims: { iat: NOW + 30.001 } }) }).expect(401);
  });
});

/** A request with a bound token of these claims, and a good proof. */
const withClaims = (claims: Members) => ({ token: boundToken(callerKey(), claims) });
const swapCase = (text: string) =>
  text.replace(/[a-z]/i, (letter) => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()));

/** A request with an RSA key of more bits than a proof may have, and a signature that is not computed. */
function withLargeKey() {
  const jwk = { e: 'AQAB', kty: 'RSA', n: Buffer.alloc(513, 0xff).toString('base64url') };
  const accessToken = token({
    claims: { cnf: { jkt: createHash('sha256').update(JSON.stringify(jwk)).digest('base64url') } },
  });
  const header = { alg: 'RS256', jwk };
  return { token: accessToken, proof: proof({ accessToken, header, sign: () => Buffer.alloc(513) }) };
}

/** Two tokens that begin with the same thousands of characters, the first with the proof for the second. */
function withProofOfTwin() {
  const ofNumber = (last: number): string => boundToken(callerKey(), { roles: 'r'.repeat(6_000), last });
  const [accessToken, twin] = [ofNumber(1), ofNumber(2)];
  return { token: accessToken, proof: proof({ accessToken: twin }) };
}

const NOT_ITS_HASH = { detail: 'ath is not the hash of the access token' };

describe('a token that is bound to a key by DPoP is refused', () => {
  it.each(badProofs(BASE_URL, NOW))('with a proof that has %s', async (_what, parts, detail) => {
    const through = dpopApp();
    expectRefusal(await through.send({ proof: proof(parts) }), 'invalid_dpop_proof', through, { dpop: 'used', detail });
  });

  it.each<[string, Parameters<DpopApp['send']>[0], Reason, RefusalDetails?]>([
    ['with no proof', { proof: null }, 'invalid_dpop_proof'],
    ['with an empty proof', { proof: '' }, 'invalid_dpop_proof'],
    ['with a proof that is not a JWT', { proof: 'x.y' }, 'invalid_dpop_proof'],
    ['with two proofs in one header', { proof: `${proof()}, ${proof()}` }, 'invalid_dpop_proof'],
    ['with an access token in place of a proof', { proof: boundToken() }, 'invalid_dpop_proof'],
    ['with more than a proof', { proof: `${proof()}x` }, 'invalid_dpop_proof'],
    ['with the proof of a token that begins alike', withProofOfTwin(), 'invalid_dpop_proof', NOT_ITS_HASH],
    [
      'with a key of 4104 bits',
      withLargeKey(),
      'invalid_dpop_proof',
      { detail: 'jwk: its modulus has more than 4096 bits' },
    ],
    ['with a good proof of another key', { proof: proof({ key: newKey() }) }, 'wrong_binding'],
    [
      'with another key, before its signature is computed',
      { proof: proof({ key: newKey(), sign: () => Buffer.from('x') }) },
      'wrong_binding',
    ],
    ['where the thumbprint differs in case only', withClaims({ cnf: { jkt: swapCase(JKT) } }), 'wrong_binding'],
    [
      'where it is bound in another way as well',
      withClaims({ cnf: { jkt: JKT, 'x5t#S256': 'x' } }),
      'sender_constrained',
    ],
    ['where its thumbprint is a number', withClaims({ cnf: { jkt: 1 } }), 'invalid_claims'],
    ['where its thumbprint is empty', withClaims({ cnf: { jkt: '' } }), 'invalid_claims'],
    ['where its thumbprint is a list', withClaims({ cnf: { jkt: ['x'] } }), 'invalid_claims'],
    ['where its thumbprint is an object', withClaims({ cnf: { jkt: { x: 1 } } }), 'invalid_claims'],
    ['for the token first, whatever the proof is', { ...withClaims({ exp: NOW - 60 }), proof: 'x' }, 'expired'],
    [
      'without a scope as any other token',
      withClaims({ scope: 'menus:read' }),
      'insufficient_scope',
      { scopes: ['orders:read'] },
    ],
  ])('%s', async (_what, sent, reason, details = {}) => {
    const through = dpopApp();
    expectRefusal(await through.send(sent), reason, through, { dpop: 'used', ...details });
  });

  it('with two DPoP headers, even the same ones', async () => {
    const through = dpopApp();
    const server = await rawServer(through.app);
    const line = `DPoP: ${proof()}`;
    const head = ['GET /v1/orders HTTP/1.1', `Authorization: DPoP ${boundToken()}`];
    expect((await server.send([...head, line])).status).toBe(200);
    const response = await server.send([...head, line.replace('DPoP', 'dpop'), line]);
    expect([response.status, response.body.code]).toEqual([401, 'invalid_dpop_proof']);
    await server.close();
  });

  it.each(['head', 'post'] as const)('without a proof for each %s, also once it is known', async (method) => {
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

  it('as a bearer token, also once it is known, and with a proof', async () => {
    const through = dpopApp();
    await through.send().expect(200);
    await through.send().expect(200);
    through.reached.length = 0;
    const details = {
      dpop: 'accepted',
      detail: 'cnf.jkt is not proven: the token came with the Bearer scheme',
    } as const;
    expectRefusal(await through.get(boundToken()), 'sender_constrained', through, details);
    expectRefusal(await through.get(boundToken()).set('DPoP', proof()), 'sender_constrained', through, details);
  });

  it('where DPoP is off: its scheme is any other one', async () => {
    const through = gateApp();
    const sent = { Authorization: `DPoP ${boundToken()}`, DPoP: proof() };
    expectRefusal(await request(through.app).get('/v1/orders').set(sent), 'missing_token', through);
  });
});

describe('a token that is not bound, where DPoP is on', () => {
  it('is accepted as a bearer token, and refused with the DPoP scheme', async () => {
    const through = dpopApp();
    await remember(through, NOT_BOUND);
    expectRefusal(await through.send({ token: NOT_BOUND }), 'binding_required', through, { dpop: 'used' });
  });

  it('is refused where a binding is required', async () => {
    const through = dpopApp({}, { possessionRequired: true });
    for (let use = 0; use < 3; use++) {
      expectRefusal(await through.get(NOT_BOUND), 'binding_required', through, { dpop: 'used' });
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
    const { headers } = await dpopApp({}, { refusals: 'next' }).send({ proof: null });
    expect(headers['www-authenticate']).toMatch(/^DPoP realm="api", error="invalid_dpop_proof"/);
    expect(headers['www-authenticate']).toMatch(/, algs="ES256 ES384 EdDSA Ed25519 PS256 RS256"$/);
  });

  it('keep the reason of a bad token private in production, and that of a bad proof public', async () => {
    const through = dpopApp({}, { exposeReasons: false });
    const codeOf = async (sent: string | null): Promise<Reason> => (await through.send({ proof: sent })).body.code;
    expect(await codeOf(proof({ key: newKey() }))).toBe('invalid_token');
    expect(await codeOf(null)).toBe('invalid_dpop_proof');
  });
});
