import { AuthError } from '../../src/core/auth-error';
import { parseToken } from '../../src/token/jws';
import type { KeySource } from '../../src/token/keys/key-set';
import { PRESETS } from '../../src/token/presets';
import { staticKeys } from '../../src/token/keys/key-set';
import { SignatureQueue } from '../../src/token/signature';
import { claimsVerifier, isUnverified, TokenVerifier } from '../../src/token/verify';
import { AUDIENCE, goodClaims, ISSUER, NOW, NOW_MS, token } from '../support/issuer';
import type { Members } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';

const keys = staticKeys(jwks(testKey()));

const clock = (): number => NOW_MS;
const rules = {
  preset: PRESETS.rfc9068,
  issuer: ISSUER,
  audiences: [AUDIENCE],
  clientIds: undefined,
  clockToleranceMs: 10_000,
  maxTokenAgeMs: 86_400_000,
  confirmations: [],
};
const verifyClaims = claimsVerifier(rules, clock);

const verifierWith = (source: KeySource): TokenVerifier =>
  new TokenVerifier({ rules, algorithms: ['ES256'], keys: source, signatures: new SignatureQueue(), clock });
const verifier = verifierWith(keys);

/** The reason of the refusal; `undefined` for a token that passes. */
async function refusalOf(raw: string, using = verifier): Promise<unknown> {
  const parsed = parseToken(raw);
  try {
    await using.verifySignature(parsed);
    verifyClaims(parsed.claims);
    return undefined;
  } catch (error) {
    return (error as AuthError).reason;
  }
}

/** The same keys from a source that has to fetch them first. */
const slowKeys: KeySource = { ...keys, find: async (header, checkToken) => keys.find(header, checkToken) };
const noKeys: KeySource = { ...keys, find: () => Promise.reject(new AuthError('keys_unavailable')) };

describe('TokenVerifier', () => {
  it('returns what the token says, frozen', () => {
    const verified = verifyClaims(parseToken(token({ claims: { nbf: NOW } })).claims);
    expect(verified).toEqual({
      clientId: 'pos-17',
      subject: 'pos-17',
      tokenId: 'c0ffee',
      expiresAtMs: NOW_MS + 3_540_000,
      acceptedFromMs: NOW_MS - 10_000,
      acceptedUntilMs: NOW_MS + 3_550_000,
      issuer: ISSUER,
      claims: { ...goodClaims(), nbf: NOW },
    });
    expect(Object.isFrozen(verified.claims)).toBe(true);
  });

  it('returns the key of the signature, cached or fetched first', async () => {
    const expected = { keyId: testKey().kid };
    expect(await verifier.verifySignature(parseToken(good))).toMatchObject(expected);
    expect(await verifierWith(slowKeys).verifySignature(parseToken(good))).toMatchObject(expected);
  });

  const good = token();
  const forged = { key: newKey('ES256', testKey().kid) };
  /** Each token has the fault of its row and of all rows after it. */
  it.each<[string, string, string | undefined]>([
    ['nothing', good, undefined],
    ['claims', token({ claims: { exp: NOW - 60 } }), 'expired'],
    ['signature', token({ ...forged, claims: { exp: NOW - 60 } }), 'bad_signature'],
    ['key', token({ key: testKey('ES256', 'other') }), 'unknown_key'],
    ['type', token({ key: testKey('ES256', 'other'), header: { typ: 'jwt' } }), 'wrong_type'],
    ['algorithm', token({ key: testKey('ES384', 'other'), header: { typ: 'jwt' } }), 'algorithm_not_allowed'],
  ])('makes its checks in order, the first that fails decides: %s', async (_what, raw, expected) => {
    expect(await refusalOf(raw)).toBe(expected);
    expect(await refusalOf(raw, verifierWith(slowKeys))).toBe(expected);
  });

  it.each<[string, Members, string]>([
    ['type of a claim', { exp: 'soon' }, 'invalid_claims'],
    ['issuer', { iss: 'https://staging.test' }, 'wrong_issuer'],
    ['audience', { aud: 'https://staging.test' }, 'wrong_audience'],
    ['end', { exp: NOW - 60 }, 'expired'],
    ['beginning', { nbf: NOW + 60 }, 'not_yet_valid'],
    ['lifetime', { exp: NOW + 90_000 }, 'lifetime_too_long'],
    ['confirmation', { cnf: { jkt: 'x' } }, 'sender_constrained'],
  ])('checks the %s of a token before an unknown key, and after a known one', async (_what, claims, expected) => {
    const other = parseToken(token({ key: testKey('ES256', 'other'), claims }));
    for (const using of [verifier, verifierWith(slowKeys)]) {
      const refusal = await using.verifySignature(other).catch((error: AuthError) => error);
      expect(refusal).toMatchObject({
        reason: expected,
        privateDetail: expect.stringMatching(/(?:^|; )its key is unknown, and was not asked for$/),
      });
      expect(isUnverified(refusal as AuthError)).toBe(true);
    }
    expect(await refusalOf(token({ claims }))).toBe(expected);
    expect(await refusalOf(token({ ...forged, claims }))).toBe('bad_signature');
  });

  it('rejects with an outage of the keys', async () => {
    expect(await refusalOf(good, verifierWith(noKeys))).toBe('keys_unavailable');
  });
});
