import { explain, requireScope } from '../../../src/gate';
import type { Reason, ScopeOptions } from '../../../src/gate';
import { gateApp, remember } from '../../support/gate-app';
import type { GateAppOptions, GateApp } from '../../support/gate-app';
import { AUDIENCE, ISSUER, NOW, NOW_MS, token } from '../../support/issuer';
import { expectRefusal } from '../../support/refusals';
import { jwks, testKey } from '../../support/keys';

type Claims = Record<string, unknown>;

async function refuses(claims: Claims, reason: Reason, options: GateAppOptions = {}): Promise<void> {
  const through = gateApp(options);
  expectRefusal(await through.get(token({ claims })), reason, through);
}

async function accepts(claims: Claims, options: GateAppOptions = {}): Promise<void> {
  await gateApp(options).get(token({ claims })).expect(200);
}

describe('claims: iss (RFC 7519 section 4.1.1) is compared byte by byte', () => {
  it('refuses an issuer without the slash where the option has one', () =>
    refuses({}, 'wrong_issuer', { issuer: `${ISSUER}/` }));

  it('accepts an issuer with the slash where the option has it too', () =>
    accepts({ iss: `${ISSUER}/` }, { issuer: `${ISSUER}/` }));
});

describe('claims: aud (RFC 7519 section 4.1.3)', () => {
  const other = 'https://other.test';
  const rows: readonly [string, unknown, string | readonly string[], boolean][] = [
    ['a string, among several expected', AUDIENCE, [other, AUDIENCE], true],
    ['an array, several expected, one in common', [other, AUDIENCE], ['x', AUDIENCE], true],
    ['an array, several expected, none in common', [other], ['x', AUDIENCE], false],
  ];
  it.each(rows)('%s', async (_what, aud, audience, accepted) => {
    if (accepted) await accepts({ aud }, { audience });
    else await refuses({ aud }, 'wrong_audience', { audience });
  });
});

describe('claims: exp (RFC 7519 section 4.1.4)', () => {
  const exact = { clockToleranceSeconds: 0 };

  it('refuses a token at exactly its exp', () => refuses({ exp: NOW }, 'expired', exact));
  it('accepts it a millisecond before', () => accepts({ exp: NOW }, { ...exact, clock: () => NOW_MS - 1 }));
  it('accepts a fraction of a second', () => accepts({ exp: NOW + 0.5 }, exact));

  it('refuses a cached token from its exp on', async () => {
    let now = NOW_MS;
    const through = gateApp({ ...exact, clock: () => now });
    const raw = token({ claims: { exp: NOW + 1 } });
    await remember(through, raw);
    now += 999;
    await through.get(raw).expect(200);
    now += 1;
    through.reached.length = 0;
    expectRefusal(await through.get(raw), 'expired', through);
  });
});

describe('claims: a cached signature of a token that was refused', () => {
  it('refuses it again as before, and accepts it as soon as its claims are good', async () => {
    let now = NOW_MS - 20_000;
    const through = gateApp({ clock: () => now });
    const raw = token({ claims: { iat: NOW - 100, nbf: NOW } });
    for (let times = 0; times < 3; times++) expectRefusal(await through.get(raw), 'not_yet_valid', through);
    now = NOW_MS;
    await through.get(raw).expect(200);
    now = NOW_MS + 7_200_000;
    through.reached.length = 0;
    expectRefusal(await through.get(raw), 'expired', through);
  });

  it('is never used for a token with another signature', async () => {
    const through = gateApp();
    const raw = token({ claims: { aud: 'x' } });
    for (let times = 0; times < 3; times++) expectRefusal(await through.get(raw), 'wrong_audience', through);
    const forged = `${raw.slice(0, -86)}${'A'.repeat(86)}`;
    expectRefusal(await through.get(forged), 'bad_signature', through);
  });
});

describe('claims: nbf (RFC 7519 section 4.1.5)', () => {
  it('accepts a token at exactly its nbf', () => accepts({ nbf: NOW }, { clockToleranceSeconds: 0 }));
  it('refuses it a millisecond before', () =>
    refuses({ nbf: NOW }, 'not_yet_valid', { clockToleranceSeconds: 0, clock: () => NOW_MS - 1 }));

  it('refuses a cached token when the clock steps back before its nbf', async () => {
    let now = NOW_MS;
    const through = gateApp({ clock: () => now });
    const raw = token({ claims: { nbf: NOW } });
    await remember(through, raw);
    now -= 10_001;
    through.reached.length = 0;
    expectRefusal(await through.get(raw), 'not_yet_valid', through);
  });
});

describe('claims: iat (RFC 7519 section 4.1.6) and the maximum lifetime', () => {
  const hour = { maxTokenAgeSeconds: 3_600 };

  it('accepts a lifetime of exactly maxTokenAgeSeconds', () => accepts({ iat: NOW, exp: NOW + 3_600 }, hour));
  it('refuses a second more', () => refuses({ iat: NOW, exp: NOW + 3_601 }, 'lifetime_too_long', hour));
  it('accepts a day by default', () => accepts({ iat: NOW, exp: NOW + 86_400 }));
  it('refuses more than a day by default', () => refuses({ iat: NOW, exp: NOW + 86_401 }, 'lifetime_too_long'));
});

describe('claims: the rfc9068 preset (RFC 9068 sections 2.1 and 2.2)', () => {
  it.each(['at+jwt', 'AT+JWT', 'At+Jwt', 'application/at+jwt', 'Application/AT+JWT'])('accepts typ %s', async (typ) => {
    await gateApp()
      .get(token({ header: { typ } }))
      .expect(200);
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
});

const gateWith = (scopes: ScopeOptions, options: GateAppOptions = {}): GateApp =>
  gateApp({
    scopes,
    ...options,
    routes: (app, reach) => void app.get('/v1/orders', requireScope('orders:read'), reach),
  });

const ROLES = { from: ['realm_access.roles'], map: { till: ['orders:read', 'items:read'] } };
const withRoles = (...roles: readonly unknown[]): string =>
  token({ claims: { scope: undefined, realm_access: { roles } } });

describe('scopes: the names of the authorization server', () => {
  it('grant what the map says, in req.auth, guards and explain()', async () => {
    const through = gateWith(ROLES);
    const response = await through.get(withRoles('till', 'offline_access')).expect(200);
    expect(response.body.auth.scopes).toEqual(['orders:read', 'items:read']);
    const { accepted, auth } = await explain(withRoles('till'), { gate: through.gate, scopes: ['items:read'] });
    expect([accepted, auth?.scopes]).toEqual([true, ['orders:read', 'items:read']]);
  });

  it.each<[string, string]>([
    ['a role that is not in the map', withRoles('cook')],
    ['a role that is named like a scope', withRoles('orders:read')],
    ['a scope in a claim that is not read', token({ claims: { scope: 'orders:read till' } })],
    ['roles in another form', withRoles('till', { roles: ['till'] })],
    ['the roles as an object', token({ claims: { scope: 'till', realm_access: { roles: { till: true } } } })],
    ['a claim with the path as its name', token({ claims: { scope: 'x', 'realm_access.roles': ['till'] } })],
    ['names of every object', withRoles('__proto__', 'constructor', 'hasOwnProperty')],
  ])('%s grants nothing: 403', async (_what, raw) => {
    const through = gateWith(ROLES);
    expectRefusal(await through.get(raw), 'insufficient_scope', through, { scopes: ['orders:read'] });
  });

  it('are read per issuer', async () => {
    const common = { audience: AUDIENCE, keys: jwks(testKey()) };
    const through = gateApp({
      issuers: [
        { ...common, issuer: ISSUER, scopes: { map: { till: 'orders:read' } } },
        { ...common, issuer: 'https://other.test' },
      ],
    });
    const till = { scope: 'till' };
    await through.get(token({ claims: till })).expect(200);
    await through.get(token({ claims: { ...till, iss: 'https://other.test' } })).expect(403);
    await through.get(token({ claims: { iss: 'https://other.test' } })).expect(200);
    await through.get(token()).expect(403);
  });
});
