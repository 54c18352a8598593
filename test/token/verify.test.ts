import { AuthError } from '../../src/core/auth-error';
import { parseToken } from '../../src/token/jws';
import type { KeySource } from '../../src/token/keys/key-set';
import { PRESETS } from '../../src/token/presets';
import { staticKeys } from '../../src/token/keys/key-set';
import { signatureQueue } from '../../src/token/signature-queue';
import { isUnverified, tokenVerifier } from '../../src/token/verify';
import type { SignedToken, TokenVerifier, VerifierOptions } from '../../src/token/verify';
import { AUDIENCE, goodClaims, ISSUER, NOW, NOW_MS, token } from '../support/issuer';
import type { Members } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';

const keys = staticKeys(jwks(testKey()));

function verifier(options: Partial<VerifierOptions> = {}): TokenVerifier {
  const rules = {
    preset: PRESETS.rfc9068,
    issuer: ISSUER,
    audiences: [AUDIENCE],
    clientIds: undefined,
    clockToleranceMs: 10_000,
    maxTokenAgeMs: 86_400_000,
    confirmations: [],
  };
  const signatures = signatureQueue();
  return tokenVerifier({ rules, algorithms: ['ES256'], keys, signatures, clock: () => NOW_MS, ...options });
}

/** The reason of the refusal; `undefined` for a token that passes. */
async function refusalOf(raw: string, using = verifier()): Promise<unknown> {
  try {
    using.verifyClaims(await using.verifySignature(parseToken(raw)));
    return undefined;
  } catch (error) {
    return (error as AuthError).reason;
  }
}

const signed = (raw: string, using = verifier()): Promise<SignedToken> => using.verifySignature(parseToken(raw));

/** The same keys from a source that has to fetch them first. */
const slowKeys: KeySource = { ...keys, find: async (header, checkToken) => keys.find(header, checkToken) };
const noKeys: KeySource = { ...keys, find: () => Promise.reject(new AuthError('keys_unavailable')) };

describe('tokenVerifier', () => {
  it('returns what the token says, frozen', async () => {
    const using = verifier();
    const verified = using.verifyClaims(await signed(token({ claims: { nbf: NOW } }), using));
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
    const expected = { claims: goodClaims(), key: expect.objectContaining({ keyId: testKey().kid }) };
    expect(await signed(token())).toEqual(expected);
    expect(await signed(token(), verifier({ keys: slowKeys }))).toEqual(expected);
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
    expect(await refusalOf(raw, verifier({ keys: slowKeys }))).toBe(expected);
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
    for (const using of [verifier(), verifier({ keys: slowKeys })]) {
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
    expect(await refusalOf(good, verifier({ keys: noKeys }))).toBe('keys_unavailable');
  });
});
