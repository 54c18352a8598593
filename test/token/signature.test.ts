import type { Algorithm } from '../../src/token/algorithms';
import { importJwk } from '../../src/token/jwk';
import { parseToken } from '../../src/token/jws';
import { verifySignature } from '../../src/token/signature';
import { token } from '../support/issuer';
import type { TokenParts } from '../support/issuer';
import { newKey, testKey } from '../support/keys';

/** Verifies with the published half of the key of that algorithm. */
function verify(alg: string, parts: TokenParts, as = alg): void {
  const key = importJwk(testKey(alg).jwk);
  if (!key) throw new Error('the key is broken');
  verifySignature(parseToken(token({ key: testKey(alg), ...parts })), key, as as Algorithm);
}

describe('verifySignature', () => {
  it.each(['ES256', 'EdDSA'])('%s: looks at the signature alone, whatever the times in the claims', (alg) => {
    expect(() => verify(alg, { claims: { exp: 1, nbf: 9_999_999_999 } })).not.toThrow();
  });

  it.each([
    ['ES256', 'invalid signature'],
    ['EdDSA', 'invalid signature'],
  ])('%s: refuses a signature of another key, and keeps the cause for operators', (alg, message) => {
    expect(() => verify(alg, { key: newKey(alg) })).toThrow(
      expect.objectContaining({ reason: 'bad_signature', cause: expect.objectContaining({ message }) }),
    );
  });

  it('refuses an algorithm that the token does not name', () => {
    expect(() => verify('ES256', {}, 'ES384')).toThrow(
      expect.objectContaining({
        reason: 'bad_signature',
        cause: expect.objectContaining({ message: 'invalid algorithm' }),
      }),
    );
  });
});
