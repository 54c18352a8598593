import { explain } from '../../../src/gate';
import type { Reason } from '../../../src/gate';
import { amount } from '../../support/amount';
import { eventually, keyServer } from '../../support/key-server';
import type { StubResponse } from '../../support/key-server';
import { newKey, testKey, jwks } from '../../support/keys';
import { remember } from '../../support/gate-app';
import { NOW } from '../../support/issuer';
import type { Members } from '../../support/issuer';
import { expectRefusal } from '../../support/refusals';
import { gateAt, REFRESH_MS, remoteGate, TTL_MS } from '../../support/remote-gate';
import type { RemoteGate } from '../../support/remote-gate';

describe('key rotation', () => {
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

    it('is ready once the keys are fetched, without any request', async () => {
      expect(through.gate.status().ready).toBe(false);
      await through.gate.ready();
      expect(through.gate.status()).toMatchObject({
        ready: true,
        issuers: [{ keys: { state: 'fresh', keys: 1, ageMs: 0 } }],
      });
    });

    it('is refreshed before its age limit, in the background, again and again', async () => {
      await through.gate.ready();
      await through.pass(REFRESH_MS - 1);
      expect(through.server.keyFetches).toBe(1);
      await through.pass(1);
      expect(through.server.keyFetches).toBe(2);
      await through.pass(3 * REFRESH_MS);
      expect(through.server.keyFetches).toBe(5);
    });

    it('is fetched by the first request when the process slept past the age limit', async () => {
      await through.gate.ready();
      through.server.publish(B);
      through.time.step(TTL_MS + 1);
      expect(await through.statusWith(B)).toBe(200);
      expect(through.server.keyFetches).toBe(2);
      expect(await through.statusWith(A)).toBe(401);
    });

    it('refuses a removed key within the age limit, also for a cached token', async () => {
      const raw = through.token({ key: A });
      await remember(through, raw);
      through.server.publish(B);
      await through.pass(TTL_MS);
      through.reached.length = 0;
      expectRefusal(await through.get(raw), 'unknown_key', through);
      expectRefusal(await through.get(through.token({ key: A })), 'unknown_key', through);
    });

    it('refuses a key that was replaced under its kid within the age limit', async () => {
      const raw = through.token({ key: A });
      await remember(through, raw);
      through.server.publish(newKey('ES256', 'a'));
      await through.pass(TTL_MS);
      through.reached.length = 0;
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
      through.reached.length = 0;
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

    it('accepts a new key after one fetch, and the old one next to it', async () => {
      through.server.publish(A, B);
      expect([await through.statusWith(B), await through.statusWith(A)]).toEqual([200, 200]);
      expect(through.server.keyFetches).toBe(2);
    });

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

    it('fetches once for one unknown kid, so that a rotation is not delayed', async () => {
      for (let index = 0; index < 10; index++) expect(await reasonOf(withKid('nowhere'))).toBe('unknown_key');
      expect(through.server.keyFetches).toBe(2);
      through.server.publish(A, B);
      expect(await through.statusWith(B)).toBe(200);
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

    it.each<[Reason, Members]>([
      ['wrong_issuer', { iss: 'https://staging.test' }],
      ['wrong_audience', { aud: 'https://staging.test' }],
      ['expired', { exp: NOW - 60 }],
      ['not_yet_valid', { nbf: NOW + 60 }],
      ['lifetime_too_long', { exp: NOW + 100_000 }],
      ['invalid_claims', { client_id: undefined }],
    ])(
      'refuses a token with an unknown kid as %s without a fetch, where no key can change that',
      async (reason, claims) => {
        for (let index = 0; index < amount(5, 50); index++) {
          const raw = through.token({ key: B, header: { kid: `random-${index}` }, claims });
          expectRefusal(await through.get(raw), reason, through);
          expect(await reasonOf(raw)).toBe(reason);
        }
        expect(through.server.keyFetches).toBe(1);
        through.server.publish(A, B);
        expect(await through.statusWith(B)).toBe(200);
      },
    );

    it('treats a kid with a line break like any other unknown kid', async () => {
      const response = await through.get(withKid('a\r\nSet-Cookie: x=1'));
      expectRefusal(response, 'unknown_key', through);
      expect(response.headers['set-cookie']).toBeUndefined();
    });

    it('does not wait for a slow issuer when the key is cached', async () => {
      let release = (): void => {};
      through.server.responses.set(
        '/jwks',
        (res) => void (release = () => res.end(JSON.stringify({ keys: [A.jwk, B.jwk] }))),
      );
      const waiting = reasonOf(through.token({ key: B }));
      await eventually(() => through.server.keyFetches === 2);
      expect(await through.statusWith(A)).toBe(200);
      release();
      expect(await waiting).toBeUndefined();
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
});

describe('key documents', () => {
  const [A, B] = [testKey('ES256', 'a'), testKey('ES256', 'b')];

  /** Why each unusable key is not used. */
  const WHY = [
    ['enc', 'its use is not sig'],
    ['sign-only', 'its key_ops lack verify'],
    ['private', 'it is a private key'],
    ['oct', 'its kty must be RSA, EC or OKP'],
    ['weak', 'its modulus has less than 2048 bits'],
    ['e1', 'its exponent is weak'],
    ['off-curve', 'it cannot be parsed'],
    ['x25519', 'it cannot be parsed'],
    ['curve', 'it cannot be parsed'],
    ['later', 'its kty must be RSA, EC or OKP'],
  ];

  describe('a response that is not a key set never replaces good keys', () => {
    const raw =
      (status: number, body: string | Buffer, headers = {}): StubResponse =>
      (res) =>
        void res.writeHead(status, headers).end(body);
    const weak = newKey('RS256', 'weak', { modulusLength: 1024 });
    const rows: readonly [string, StubResponse, string][] = [
      ['an empty list of keys', { keys: [] }, 'is not a key set with keys in it'],
      ['no JSON', raw(200, '<html>'), 'did not respond with a JSON object'],
      [
        'only keys that cannot verify',
        { keys: [weak.jwk, null, 7, 'x', [], {}, { kty: 'oct', k: 'AA' }, { ...A.jwk, x: '!!' }] },
        'has no key that can verify access tokens',
      ],
      ['500', raw(500, JSON.stringify(jwks(A))), 'responded with 500'],
      [
        'a redirect to good keys',
        raw(302, '', { location: '/good' }),
        'responded with 302; redirects are refused, configure the final URL',
      ],
      ['a connection that breaks', (res) => void res.destroy(), 'could not be fetched (UND_ERR_SOCKET)'],
    ];
    it.each(rows)('%s', async (_what, response, detail) => {
      const through = await remoteGate([A]);
      through.server.responses.set('/good', jwks(B));
      expect(await through.statusWith(A)).toBe(200);
      through.server.responses.set('/jwks', response);
      await through.pass(REFRESH_MS);
      expect(through.log.at('warn').at(-1)).toMatchObject({
        fields: { detail: `${through.server.origin}/jwks ${detail}` },
      });
      expect(await through.statusWith(A)).toBe(200);
      expect(through.server.requests).not.toContain('/good');
      await through.stop();
    });

    it('ignores unusable keys and uses the rest, with one warning for each', async () => {
      const bad = [
        { ...B.jwk, kid: 'enc', use: 'enc' },
        { ...B.jwk, kid: 'sign-only', key_ops: ['sign'] },
        { ...B.privateKey.export({ format: 'jwk' }), kid: 'private' },
        { kty: 'oct', kid: 'oct', k: 'c2VjcmV0' },
        { ...weak.jwk, kid: 'weak' },
        { ...testKey('RS256').jwk, kid: 'e1', e: 'AQ' },
        { ...B.jwk, kid: 'off-curve', x: B.jwk['y'] },
        { kty: 'OKP', crv: 'X25519', kid: 'x25519', x: 'A'.repeat(43) },
        { kty: 'EC', crv: 'P-999', kid: 'curve', x: 'AA', y: 'AA' },
        { kty: 'AKP', alg: 'ML-DSA-44', kid: 'later', pub: 'AA' },
        null,
      ];
      const through = await remoteGate([A]);
      through.server.responses.set('/jwks', { keys: [...bad, A.jwk] });
      expect(await through.statusWith(A)).toBe(200);
      through.reached.length = 0;
      for (const [kid, why] of WHY) {
        const signed = through.token({ key: kid === 'weak' ? weak : B, header: { kid } });
        for (let times = 0; times < 2; times++) {
          expectRefusal(await through.get(signed), 'unusable_key', through);
          expect(through.log.at('info').at(-1)?.fields['detail']).toBe(`the key is not used: ${why}`);
        }
      }
      expect(through.server.keyFetches).toBe(1);
      await through.pass(REFRESH_MS);
      expect(through.server.keyFetches).toBe(2);
      const warned = through.log.at('warn').map(({ fields: { kid, why } }) => [kid, why]);
      // The key for encryption, the first row, is no mistake of the issuer.
      expect(warned.sort()).toEqual([...WHY.slice(1), ['a kid of type undefined', 'it is not an object']].sort());
      await through.stop();
    });
  });
});
