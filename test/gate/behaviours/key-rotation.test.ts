import { explain } from '../../../src/gate';
import { amount } from '../../support/amount';
import { keyServer } from '../../support/key-server';
import { newKey, testKey } from '../../support/keys';
import { remember } from '../../support/gate-app';
import { expectRefusal } from '../../support/refusals';
import { gateAt, REFRESH_MS, remoteGate, TTL_MS } from '../../support/remote-gate';
import type { RemoteGate } from '../../support/remote-gate';

const [A, B, C] = [testKey('ES256', 'a'), testKey('ES256', 'b'), testKey('ES256', 'c')];

describe('key set: the cache', () => {
  let through: RemoteGate;
  beforeEach(async () => void (through = await remoteGate([A])));
  afterEach(() => through.stop());

  /** Verifies a token without HTTP. */
  const accepts = async (raw: string): Promise<boolean> => (await explain(raw, { gate: through.gate })).accepted;

  it('serves the second request, and the hundredth, without a fetch', async () => {
    for (let index = 0; index < 100; index++) expect(await accepts(through.token({ key: A }))).toBe(true);
    expect(through.server.requests).toEqual(['/.well-known/openid-configuration', '/jwks']);
  });

  it('responds to many simultaneous cold requests with one fetch', async () => {
    const accepted = await Promise.all(
      Array.from({ length: amount(50, 1_000) }, () => accepts(through.token({ key: A }))),
    );
    expect(accepted.every(Boolean)).toBe(true);
    expect(through.server.keyFetches).toBe(1);
  });

  it('refuses a removed key within the age limit, also for a cached token', async () => {
    const raw = through.token({ key: A });
    await remember(through, raw);
    through.server.publish(B);
    await through.pass(TTL_MS);
    expectRefusal(await through.get(raw), 'unknown_key', through);
    expectRefusal(await through.get(through.token({ key: A })), 'unknown_key', through);
  });

  it('refuses a key that was replaced under its kid within the age limit', async () => {
    const raw = through.token({ key: A });
    await remember(through, raw);
    through.server.publish(newKey('ES256', 'a'));
    await through.pass(TTL_MS);
    expectRefusal(await through.get(raw), 'bad_signature', through);
  });

  it('refuses an algorithm that a key no longer has, also for a cached token', async () => {
    const { alg: _alg, ...bare } = testKey('RS256').jwk;
    const key = { ...testKey('RS256'), alg: 'PS256' };
    through.server.publish({ ...key, jwk: bare });
    await through.pass(TTL_MS);
    const raw = through.token({ key });
    await remember(through, raw);
    through.server.publish({ ...key, jwk: { ...bare, alg: 'RS256' } });
    await through.pass(TTL_MS);
    expectRefusal(await through.get(raw), 'algorithm_not_allowed', through);
    expect(await through.statusWith(testKey('RS256'))).toBe(200);
  });

  it('keeps a cached token across a refresh that changes nothing: the same object is returned', async () => {
    const raw = through.token({ key: A });
    await remember(through, raw);
    await through.pass(REFRESH_MS);
    expect(through.server.keyFetches).toBe(2);
    await through.get(raw).expect(200);
    const [, remembered, recalled] = through.decisions.map(({ auth }) => auth);
    expect(remembered).toBeDefined();
    expect(recalled).toBe(remembered);
  });
});

describe('key set: rotation and unknown key ids', () => {
  let through: RemoteGate;
  beforeEach(async () => {
    through = await remoteGate([A]);
    await through.gate.ready();
  });
  afterEach(() => through.stop());

  const reasonOf = async (raw: string): Promise<string | undefined> => {
    const { checks } = await explain(raw, { gate: through.gate });
    return checks.find(({ outcome }) => outcome === 'failed')?.reason;
  };
  const withKid = (kid: string): string => through.token({ key: A, header: { kid } });

  it('accepts a new key for 100 simultaneous requests with one fetch', async () => {
    through.server.publish(B);
    const reasons = await Promise.all(Array.from({ length: 100 }, () => reasonOf(through.token({ key: B }))));
    expect(new Set(reasons)).toEqual(new Set([undefined]));
    expect(through.server.keyFetches).toBe(2);
  });

  it('refuses no request while two rotations follow each other within 30 s', async () => {
    through.server.publish(A, B);
    expect(await through.statusWith(B)).toBe(200);
    await through.pass(10_000);
    through.server.publish(A, B, C);
    expect(await through.statusWith(C)).toBe(200);
    expect([await through.statusWith(A), await through.statusWith(B)]).toEqual([200, 200]);
    expect(through.server.keyFetches).toBe(3);
  });

  it('fetches at most twice for one unknown kid that is sent many times, in sequence and in parallel', async () => {
    const times = amount(50, 1_000);
    for (let index = 0; index < times; index++) expect(await reasonOf(withKid('nowhere'))).toBe('unknown_key');
    const rest = await Promise.all(Array.from({ length: times }, () => reasonOf(withKid('nowhere'))));
    expect(new Set(rest)).toEqual(new Set(['unknown_key']));
    expect(through.server.keyFetches - 1).toBeLessThanOrEqual(2);
  });

  it('fetches at most twice for 50 random kids, and keeps using its keys', async () => {
    const random = Array.from({ length: 50 }, (_, index) => reasonOf(withKid(`random-${index}`)));
    const known = Array.from({ length: 50 }, () => reasonOf(through.token({ key: A })));
    expect(new Set(await Promise.all(random))).toEqual(new Set(['unknown_key']));
    expect(new Set(await Promise.all(known))).toEqual(new Set([undefined]));
    const later = new Set<unknown>();
    for (let index = 0; index < 50; index++) later.add(await reasonOf(withKid(`later-${index}`)));
    // The second fetch is for the first of them; the others caused none.
    expect(later).toEqual(new Set(['unknown_key', 'too_many_unknown_keys']));
    expect(through.server.keyFetches - 1).toBeLessThanOrEqual(2);
  });

  it('responds with 429 and a correct Retry-After while no fetch for a new key is allowed', async () => {
    for (let index = 0; index < 50; index++) await reasonOf(withKid(`random-${index}`));
    through.server.publish(A, B);
    const response = await through.get(through.token({ key: B }));
    expectRefusal(response, 'too_many_unknown_keys', through, { retryAfter: 5 });
    await through.pass(5_000);
    expect(await through.statusWith(B)).toBe(200);
  });
});

describe('key set: two issuers with keys of the same kid', () => {
  it('never verifies a token of one with a key of the other', async () => {
    const [keyOne, keyTwo] = [newKey('ES256', 'same'), newKey('ES256', 'same')];
    const [one, two] = [await keyServer(keyOne), await keyServer(keyTwo)];
    const audience = 'https://api.test';
    const through = gateAt(one, {
      issuers: [
        { issuer: one.origin, audience },
        { issuer: two.origin, audience },
      ],
    });
    const signed = (issuer: string, key = keyOne): string => through.token({ key, claims: { iss: issuer } });

    await through.get(signed(one.origin, keyOne)).expect(200);
    const response = await through.get(signed(two.origin, keyTwo)).expect(200);
    expect(response.body.auth.issuer).toBe(two.origin);
    through.reached.length = 0;
    expectRefusal(await through.get(signed(one.origin, keyTwo)), 'bad_signature', through);
    expectRefusal(await through.get(signed(two.origin, keyOne)), 'bad_signature', through);
    expectRefusal(await through.get(signed('https://evil.test', keyOne)), 'wrong_issuer', through);
    expectRefusal(
      await through.get(through.token({ key: keyOne, claims: { iss: undefined } })),
      'wrong_issuer',
      through,
    );
    await Promise.all([through.stop(), two.stop()]);
  });
});
