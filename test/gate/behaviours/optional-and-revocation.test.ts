import { requireScope } from '../../../src/gate';
import type { Reason } from '../../../src/gate';
import type { GenerationSource } from '../../../src/gate/generation';
import { gateApp, remember } from '../../support/gate-app';
import type { GateApp, GateAppOptions } from '../../support/gate-app';
import { fakeTime } from '../../support/fake-time';
import { sourceOf } from '../../support/generation-source';
import { GENERATION, NOW_MS, token } from '../../support/issuer';
import { newKey, testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';

const open: GateAppOptions = {
  optional: true,
  routes: (app, reach) => {
    app.get('/v1/menus', reach);
    app.get('/v1/orders', requireScope('orders:read'), reach);
  },
};

describe('optional authentication', () => {
  it('accepts a request without a token as anonymous', async () => {
    const through = gateApp(open);
    const response = await through.get(undefined, '/v1/menus').expect(200);
    expect(response.body.auth).toBeNull();
    expect(through.decisions).toMatchObject([{ outcome: 'anonymous', method: 'GET', path: '/v1/menus' }]);
    expect(through.log.entries).toEqual([]);
  });

  it.each<[string, string, Reason]>([
    ['an expired token', `Bearer ${token({ claims: { exp: 1 } })}`, 'expired'],
    ['a forged token', `Bearer ${token({ key: newKey('ES256', testKey().kid) })}`, 'bad_signature'],
    ['no JWT', 'Bearer x', 'malformed_token'],
    ['the scheme alone', 'Bearer', 'malformed_authorization'],
  ])('still refuses %s', async (_what, header, reason) => {
    const through = gateApp(open);
    const response = await through.get(undefined, '/v1/menus').set('Authorization', header);
    expectRefusal(response, reason, through);
  });

  it('still refuses a cached token that is no longer good: it never becomes anonymous', async () => {
    let now = NOW_MS;
    const through = gateApp({ optional: true, clock: () => now });
    const [raw, later] = [token(), token({ claims: { generation: GENERATION + 1 } })];
    await remember(through, raw);
    await remember(through, later);
    expectRefusal(await through.get(raw), 'superseded', through);
    now += 7_200_000;
    expectRefusal(await through.get(later), 'expired', through);
  });

  it('requires a token where there is a guard', async () => {
    const through = gateApp(open);
    expectRefusal(await through.get(), 'missing_token', through, { challengeScopes: ['orders:read'] });
  });

  it('responds with 503 to a token while the keys are unavailable, and still accepts requests without a token', async () => {
    const fetch = (): Promise<Response> => Promise.reject(new Error('down'));
    const through = gateApp({ ...open, jwksUri: 'https://login.test/jwks', fetch });
    expectRefusal(await through.get(token(), '/v1/menus'), 'keys_unavailable', through);
    await through.get(undefined, '/v1/menus').expect(200);
    await through.gate.close();
  });
});

function withSource(generations: GenerationSource, options: GateAppOptions = {}): GateApp {
  const time = fakeTime(NOW_MS);
  return gateApp({ generationSource: generations, clock: time.clock, schedule: time.schedule, ...options });
}

describe('revocation: the generation of a token', () => {
  it.each<[string, Parameters<typeof token>[0], Reason]>([
    ['a good token', {}, 'superseded'],
    ['a forged signature', { key: newKey('ES256', testKey().kid) }, 'bad_signature'],
    ['an expired token', { claims: { exp: 1 } }, 'expired'],
    ['another audience', { claims: { aud: 'x' } }, 'wrong_audience'],
  ])('refuses a token below the floor, after every other check: %s', async (_what, parts, reason) => {
    const through = withSource(sourceOf([['pos-17', GENERATION + 1]]));
    expectRefusal(await through.get(token(parts)), reason, through);
    await through.gate.close();
  });

  it('never learns from a token that is refused', async () => {
    const through = gateApp();
    const later = { generation: NOW_MS };
    await through.get(token({ key: newKey('ES256', testKey().kid), claims: later })).expect(401);
    await through.get(token({ claims: { ...later, aud: 'x' } })).expect(401);
    await through.get(token()).expect(200);
    expect(through.gate.status().issuers[0]?.generations?.floors).toBe(1);
  });

  it('learns from a good token: earlier ones are refused, cached or not', async () => {
    const through = gateApp();
    const [old, fresh] = [token(), token({ claims: { generation: GENERATION + 1 } })];
    await remember(through, old);
    await through.get(fresh).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(old), 'superseded', through);
    expectRefusal(await through.get(token({ claims: { jti: 'unseen' } })), 'superseded', through);
    await through.get(fresh).expect(200);
  });

  it('reads the configured claim, and none when the check is off', async () => {
    const claims = { generation: undefined };
    await gateApp({ generationClaim: 'cg' })
      .get(token({ claims: { ...claims, cg: 5 } }))
      .expect(200);
    const nested = { ext: { generation: 5, 'a.b': 6 }, 'urn:x.y': 7, 'a.b': 8, a: { b: 9 } };
    for (const [generationClaim, generation] of [
      ['ext.generation', 5],
      [['ext', 'a.b'], 6],
      ['urn:x.y', 7],
      [['a.b'], 8],
      ['a.b', 9],
    ] as const) {
      const through = gateApp({ generationClaim });
      const { body } = await through.get(token({ claims: { ...claims, ...nested } })).expect(200);
      expect(body.auth.generation).toBe(generation);
      through.reached.length = 0;
      expectRefusal(await through.get(token({ claims: { ...claims, ext: [5] } })), 'generation_missing', through);
    }
    const response = await gateApp({ generationClaim: false }).get(token({ claims })).expect(200);
    expect(response.body.auth).not.toHaveProperty('generation');
  });
});

describe('revocation: a store that is down', () => {
  it('decides per mount: 503 by default, never 401, or accepted with one warning', async () => {
    const down = sourceOf([], { down: true });
    const [strict, lenient] = [withSource(down), withSource(down, { onStale: 'accept' })];
    expectRefusal(await strict.get(token()), 'generations_unavailable', strict);
    for (let use = 0; use < 2; use++) await lenient.get(token()).expect(200);
    const warnings = lenient.log.at('warn').map(({ message }) => message);
    const accepted = 'generations are out of date, requests are accepted';
    expect(warnings.filter((message) => message === accepted)).toHaveLength(1);
    await Promise.all([strict.gate.close(), lenient.gate.close()]);
  });

  it('still refuses a token that is known to be superseded, where it is accepted', async () => {
    const through = withSource(sourceOf([], { down: true }), { onStale: 'accept' });
    await through.get(token({ claims: { generation: GENERATION + 1 } })).expect(200);
    through.reached.length = 0;
    expectRefusal(await through.get(token()), 'superseded', through);
    await through.gate.close();
  });
});
