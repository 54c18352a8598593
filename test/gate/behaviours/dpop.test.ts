import request from 'supertest';
import type { Test } from 'supertest';
import { requireAuthenticated } from '../../../src/gate';
import type { Reason } from '../../../src/gate';
import { BASE_URL, boundToken, callerKey, dpopApp, proof, thumbprint } from '../../support/dpop';
import type { DpopApp } from '../../support/dpop';
import { gateApp, remember } from '../../support/gate-app';
import { NOW, token } from '../../support/issuer';
import type { Members } from '../../support/issuer';
import { newKey } from '../../support/keys';
import { rawServer } from '../../support/raw-request';
import { expectRefusal } from '../../support/refusals';
import type { RefusalDetails } from '../../support/refusals';

const NOT_BOUND = token();

describe('a token that is bound to a key by DPoP is accepted', () => {
  it('with its proof, and again with another proof once it is known', async () => {
    const through = dpopApp();
    for (let use = 0; use < 3; use++) {
      const { body } = await through.send().expect(200);
      expect(body.auth.claims.cnf).toEqual({ jkt: thumbprint(callerKey()) });
    }
    expect(through.reached).toHaveLength(3);
  });

  it('under the path of baseUrl, with its scheme in any case', async () => {
    const through = dpopApp({ baseUrl: `${BASE_URL}/shop/` });
    const sent = { Authorization: `dpop ${boundToken()}`, DPoP: proof({ url: `${BASE_URL}/shop/v1/orders` }) };
    await request(through.app).get('/v1/orders').set(sent).expect(200);
  });
});

describe('a token that is bound to a key by DPoP is refused', () => {
  const withClaims = (claims: Members) => ({ token: boundToken(callerKey(), claims) });

  it.each<[string, Parameters<DpopApp['send']>[0], Reason, RefusalDetails?]>([
    ['with a bad proof', { proof: 'x.y' }, 'invalid_dpop_proof', { detail: '2 parts instead of 3' }],
    ['with a good proof of another key', { proof: proof({ key: newKey() }) }, 'wrong_binding'],
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
