import { AuthError } from '../../src/core/auth-error';
import type { VerificationKey } from '../../src/token/keys/jwk';
import { parseToken } from '../../src/token/jws';
import type { KeySource } from '../../src/token/keys/key-source';
import { PRESETS } from '../../src/token/presets';
import { staticKeys } from '../../src/token/keys/static-keys';
import { tokenVerifier } from '../../src/token/verify';
import type { SignedToken, TokenVerifier, VerifierOptions } from '../../src/token/verify';
import { AUDIENCE, goodClaims, ISSUER, NOW, NOW_MS, token } from '../support/issuer';
import { jwks, testKey } from '../support/keys';

const keys = staticKeys(jwks(testKey()));

function verifier(options: Partial<VerifierOptions> = {}): TokenVerifier {
  const rules = {
    preset: PRESETS.rfc9068,
    issuer: ISSUER,
    audiences: [AUDIENCE],
    clientIds: undefined,
    clockToleranceMs: 10_000,
    maxTokenAgeMs: 86_400_000,
    acceptSenderConstrained: false,
  };
  return tokenVerifier({ rules, algorithms: ['ES256'], keys, clock: () => NOW_MS, ...options });
}

/** What was passed before the end, and the end: the reason of the refusal. */
async function steps(raw: string, using = verifier()): Promise<readonly unknown[]> {
  const passed: unknown[] = [];
  try {
    using.verifyClaims(await using.verifySignature(parseToken(raw), (check) => passed.push(check)));
    passed.push('claims');
  } catch (error) {
    passed.push((error as AuthError).reason);
  }
  return passed;
}

/** Of a token whose key is at hand. */
function signed(raw: string, using = verifier()): SignedToken {
  const found = using.verifySignature(parseToken(raw), () => {});
  if (found instanceof Promise) throw new Error('the key was at hand');
  return found;
}

/** The same keys from a source that has to ask somebody first. */
const slowKeys: KeySource = { ...keys, find: async (header) => keys.find(header) };
const noKeys: KeySource = { ...keys, find: () => Promise.reject(new AuthError('keys_unavailable')) };

describe('tokenVerifier', () => {
  it('answers what the token says, frozen', () => {
    const verified = verifier().verifyClaims(signed(token()));
    expect(verified).toEqual({
      clientId: 'pos-17',
      subject: 'pos-17',
      tokenId: 'c0ffee',
      expiresAtMs: NOW_MS + 3_540_000,
      notBeforeMs: undefined,
      issuer: ISSUER,
      scopes: ['orders:read', 'orders:write'],
      claims: goodClaims(),
    });
    expect([verified.claims, verified.scopes].every(Object.isFrozen)).toBe(true);
  });

  it('says which key the signature is good for: at once where it is at hand, else later', async () => {
    const expected = { claims: goodClaims(), key: expect.objectContaining({ keyId: testKey().kid }) };
    expect(signed(token())).toEqual(expected);
    const later = verifier({ keys: slowKeys }).verifySignature(parseToken(token()), () => {});
    expect(later).toBeInstanceOf(Promise);
    expect(await later).toEqual(expected);
  });

  const [good, other] = [token(), token({ key: testKey('ES256', 'other') })];
  it.each<[string, string, readonly string[]]>([
    ['a good token', good, ['structure', 'header', 'key', 'signature', 'claims']],
    ['another algorithm', token({ key: testKey('ES384') }), ['structure', 'algorithm_not_allowed']],
    ['another type', token({ header: { typ: 'jwt' } }), ['structure', 'wrong_type']],
    ['an unknown key', other, ['structure', 'header', 'unknown_key']],
    ['a forged signature', `${good.slice(0, -86)}${'A'.repeat(86)}`, ['structure', 'header', 'key', 'bad_signature']],
    ['an expired token', token({ claims: { exp: NOW - 60 } }), ['structure', 'header', 'key', 'signature', 'expired']],
  ])('makes its checks in order, and none behind the first that fails: %s', async (_what, raw, expected) => {
    expect(await steps(raw)).toEqual(expected);
    expect(await steps(raw, verifier({ keys: slowKeys }))).toEqual(expected);
  });

  it('passes an outage of the keys on', async () => {
    expect(await steps(good, verifier({ keys: noKeys }))).toEqual(['structure', 'header', 'keys_unavailable']);
  });

  it('asks again what can change while a verdict is remembered: the times, and the key', () => {
    let nowMs = NOW_MS;
    let known: readonly VerificationKey[] = [];
    const source: KeySource = { ...keys, has: (key) => known.includes(key) };
    const using = verifier({ clock: () => nowMs, keys: source });
    const remembered = signed(token({ claims: { nbf: NOW } }), using);
    const verified = using.verifyClaims(remembered);
    expect(using.stillSigned(remembered)).toBe(false);
    known = [remembered.key];
    expect(using.stillSigned(remembered)).toBe(true);
    expect(using.checkTimes(verified)).toBeUndefined();
    nowMs = NOW_MS + 3_540_000 + 10_000;
    expect(() => using.checkTimes(verified)).toThrow(new AuthError('expired'));
    nowMs = NOW_MS - 10_001;
    expect(() => using.checkTimes(verified)).toThrow(new AuthError('not_yet_valid'));
  });
});
