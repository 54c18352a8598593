import { explain, requireScope } from '../../src';
import type { ScopeOptions } from '../../src';
import { memoryGenerations } from '../../src/generation';
import { gateApp, remember } from '../support/gate-app';
import type { GateApp, GateAppOptions } from '../support/gate-app';
import { AUDIENCE, GENERATION, ISSUER, NOW_MS, goodClaims, token } from '../support/issuer';
import { jwks, testKey } from '../support/keys';
import { expectRefusal } from '../support/refusals';

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

  it('a function that throws refuses the token with 403, on every use, and the log says which one', async () => {
    const through = gateWith({
      map: () => {
        throw new Error('no such role');
      },
    });
    for (let use = 0; use < 3; use++) expectRefusal(await through.get(token()), 'claim_refused', through);
    expect(through.log.at('info').map(({ fields }) => fields['detail'])).toEqual(
      Array.from({ length: 3 }, () => 'option scopes.map threw'),
    );
    const { checks } = await explain(token(), { gate: through.gate });
    expect(checks.at(-1)).toMatchObject({ check: 'scope', outcome: 'failed', reason: 'claim_refused' });
  });

  it('an async function refuses the token, and its rejection does not end the process', async () => {
    const through = gateWith({ map: (() => Promise.reject(new Error('late'))) as never });
    expectRefusal(await through.get(token()), 'claim_refused', through);
  });

  it('a function is called once for a cached token, and never for one that is refused', async () => {
    let calls = 0;
    const generationSource = memoryGenerations({ clock: () => NOW_MS });
    const through = gateWith(
      {
        map: (names) => {
          calls++;
          return names;
        },
      },
      { generationSource },
    );
    const raw = token();
    await remember(through, raw);
    await through.get(raw).expect(200);
    expect(calls).toBe(2);
    await generationSource.append([['pos-17', GENERATION + 1]]);
    await through.get(raw).expect(401);
    await through.get(token({ claims: { jti: 'other' } })).expect(401);
    await through.get(token({ claims: { exp: 1 } })).expect(401);
    expect(calls).toBe(2);
  });

  it('a function cannot change the claims that the handler sees', async () => {
    const through = gateWith({
      map: (names, claims) => {
        Reflect.set(claims, 'store', 'all');
        return names;
      },
    });
    const response = await through.get(token()).expect(200);
    expect(response.body.auth.claims).toEqual(goodClaims());
  });
});
