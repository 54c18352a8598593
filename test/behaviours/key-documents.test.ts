import type { StubResponse } from '../support/key-server';
import { jwks, newKey, testKey } from '../support/keys';
import { expectRefusal } from '../support/refusals';
import { REFRESH_MS, remoteGate } from '../support/remote-gate';

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
    ['no list of keys', {}, 'is not a key set with keys in it'],
    ['keys that are not an array', { keys: { a: A.jwk } }, 'is not a key set with keys in it'],
    ['an array', raw(200, JSON.stringify([A.jwk])), 'did not respond with a JSON object'],
    ['no JSON', raw(200, '<html>'), 'did not respond with a JSON object'],
    ['half a document', raw(200, '{"keys":[{"kty"'), 'did not respond with a JSON object'],
    [
      'only keys that cannot verify',
      { keys: [weak.jwk, null, 7, 'x', [], {}, { kty: 'oct', k: 'AA' }] },
      'has no key that can verify access tokens',
    ],
    [
      'keys whose kid is not a text',
      { keys: [{ ...A.jwk, kid: { toString: null } }, { kid: { toString: 1 } }] },
      'has no key that can verify access tokens',
    ],
    [
      'keys with broken material',
      { keys: [{ ...A.jwk, x: '!!' }, { kty: 'RSA', n: 1, e: null }, { kty: 'EC' }] },
      'has no key that can verify access tokens',
    ],
    ['204', raw(204, ''), 'responded with 204'],
    ['404', raw(404, ''), 'responded with 404'],
    ['500', raw(500, JSON.stringify(jwks(A))), 'responded with 500'],
    [
      'a redirect to good keys',
      raw(302, '', { location: '/good' }),
      'responded with 302; redirects are refused, configure the final URL',
    ],
    [
      'a permanent redirect',
      raw(308, '', { location: '/good' }),
      'responded with 308; redirects are refused, configure the final URL',
    ],
    [
      'a body above 1 MB',
      raw(200, `{"keys":[],"x":"${'x'.repeat(1_100_000)}"}`),
      'responded with more than 1048576 bytes',
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
    expect(warned.sort()).toEqual([...WHY, ['a kid of type undefined', 'it is not an object']].sort());
    await through.stop();
  });
});
