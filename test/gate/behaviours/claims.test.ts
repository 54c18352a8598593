import { explain } from '../../../src/gate';
import { gateApp, remember } from '../../support/gate-app';
import { AUDIENCE, base64url, goodClaims, ISSUER, NOW, NOW_MS, token } from '../../support/issuer';
import { eventually } from '../../support/key-server';
import { jwks, newKey, testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';
import { remoteGate } from '../../support/remote-gate';

const [KEY, RS] = [testKey(), testKey('RS256')];

describe('the option algorithms', () => {
  it.each([
    ['Ed25519', 'EdDSA'],
    ['EdDSA', 'Ed25519'],
  ])('accepts alg %s with a key, and an option, that say %s (RFC 9864)', async (alg, published) => {
    const key = testKey(published);
    const through = gateApp({ keys: jwks(key), algorithms: [published as 'EdDSA'] });
    await through.get(token({ key, header: { alg } })).expect(200);
  });

  it('refuses an algorithm that `algorithms` does not list, before it looks for a key', async () => {
    const through = gateApp({ keys: jwks(KEY, RS), algorithms: ['RS256'] });
    await through.get(token({ key: RS })).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(token({ key: KEY, header: { kid: 'nowhere' } })), 'algorithm_not_allowed', through);
  });
});

it('refuses a cached token when the clock steps back before its nbf', async () => {
  let now = NOW_MS;
  const through = gateApp({ clock: () => now });
  const raw = token({ claims: { nbf: NOW } });
  await remember(through, raw);
  now -= 10_001;
  expectRefusal(await through.get(raw), 'not_yet_valid', through);
});

it('passes the claims to the handler, deeply frozen', async () => {
  const through = gateApp();
  const response = await through.get(token({ claims: { store: { id: 'berlin-1' } } })).expect(200);
  expect(response.body.auth).toEqual({
    issuer: ISSUER,
    clientId: 'pos-17',
    subject: 'pos-17',
    tokenId: 'c0ffee',
    scopes: ['orders:read', 'orders:write'],
    generation: NOW_MS - 60_000,
    expiresAtMs: NOW_MS + 3_540_000,
    claims: expect.objectContaining({ iss: ISSUER, store: { id: 'berlin-1' } }),
  });
  const auth = through.decisions[0]?.auth;
  expect([auth, auth?.scopes, auth?.claims, auth?.claims['store']].every(Object.isFrozen)).toBe(true);
});

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

  it('leave only req.auth on the request, nothing of passport', async () => {
    const names = ['user', 'authInfo', 'login', 'logIn', 'isAuthenticated', '_passport', 'session'];
    const through = gateApp({
      routes: (app) => void app.get('/v1/orders', (req, res) => void res.json(names.filter((name) => name in req))),
    });
    expect((await through.get(token()).expect(200)).body).toEqual([]);
  });
});

describe('scopes: the names of the authorization server', () => {
  const ROLES = { from: ['realm_access.roles'], map: { till: ['orders:read', 'items:read'] } };
  const withRoles = (...roles: readonly string[]): string =>
    token({ claims: { scope: undefined, realm_access: { roles } } });

  it('grant what the map says, in req.auth, guards and explain()', async () => {
    const through = gateApp({ scopes: ROLES });
    const response = await through.get(withRoles('till', 'offline_access')).expect(200);
    expect(response.body.auth.scopes).toEqual(['orders:read', 'items:read']);
    const { accepted, auth } = await explain(withRoles('till'), { gate: through.gate, scopes: ['items:read'] });
    expect([accepted, auth?.scopes]).toEqual([true, ['orders:read', 'items:read']]);
  });

  it('are read per issuer', async () => {
    const common = { audience: AUDIENCE, keys: jwks(testKey()) };
    const other = 'https://other.test';
    const scopes = { map: { till: 'orders:read' } };
    const through = gateApp({
      issuers: [
        { ...common, issuer: ISSUER, scopes },
        { ...common, issuer: other },
      ],
    });
    const till = { scope: 'till' };
    await through.get(token({ claims: till })).expect(200);
    await through.get(token({ claims: { ...till, iss: other } })).expect(403);
    await through.get(token({ claims: { iss: other } })).expect(200);
    await through.get(token()).expect(403);
  });
});
