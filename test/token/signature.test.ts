import { constants, createSecretKey, sign } from 'node:crypto';
import { ALGORITHMS } from '../../src/token/signature';
import type { Algorithm } from '../../src/token/signature';
import { importKey } from '../../src/token/keys/key-set';
import { parseToken } from '../../src/token/jws';
import { verifySignature } from '../../src/token/signature';
import { token } from '../support/issuer';
import type { TokenParts } from '../support/issuer';
import { newKey, testKey } from '../support/keys';

const BAD = expect.objectContaining({ name: 'AuthError', reason: 'bad_signature' });

/** Verifies with the published half of the key of that algorithm. */
function verifyRaw(alg: string, raw: string, as = alg): void {
  const key = importKey(testKey(alg).jwk);
  if (typeof key === 'string') throw new Error(key);
  verifySignature(parseToken(raw), key.key, as as Algorithm);
}

function verify(alg: string, parts: TokenParts, as = alg): void {
  verifyRaw(alg, token({ key: testKey(alg), ...parts }), as);
}

describe('verifySignature', () => {
  it.each(['ES256', 'EdDSA', 'Ed25519'])(
    '%s: looks at the signature alone, whatever the times in the claims',
    (alg) => {
      expect(() => verify(alg, { claims: { exp: 1, nbf: 9_999_999_999 } })).not.toThrow();
    },
  );

  it.each(ALGORITHMS)('%s: accepts the signature of its key, and refuses that of another, cut or changed', (alg) => {
    const good = token({ key: testKey(alg) });
    expect(() => verify(alg, {})).not.toThrow();
    expect(() => verify(alg, { key: newKey(alg) })).toThrow(BAD);
    const [input, signature = ''] = [good.slice(0, good.lastIndexOf('.')), good.slice(good.lastIndexOf('.') + 1)];
    const bytes = Buffer.from(signature, 'base64url');
    const zero = Buffer.of(0);
    const changes = [
      bytes.subarray(1),
      bytes.subarray(0, -1),
      Buffer.concat([bytes, zero]),
      Buffer.concat([zero, bytes]),
    ];
    for (const changed of changes) {
      expect(() => verifyRaw(alg, `${input}.${changed.toString('base64url')}`)).toThrow(BAD);
    }
    bytes[0] = (bytes[0] ?? 0) ^ 1;
    expect(() => verifyRaw(alg, `${input}.${bytes.toString('base64url')}`)).toThrow(BAD);
  });

  it.each([
    ['RS256', 'PS256'],
    ['PS256', 'RS256'],
    ['RS256', 'RS384'],
    ['ES256', 'ES384'],
  ] as const)('refuses a signature by %s where %s is asked for', (alg, as) => {
    expect(() => verify(alg, {}, as)).toThrow(BAD);
  });

  it.each([0, 20, 31, 33, 48, 64])(
    'PS256: refuses a salt of %i bytes (RFC 7518 section 3.5: as long as the hash)',
    (saltLength) => {
      const { privateKey: key } = testKey('PS256');
      const padding = constants.RSA_PKCS1_PSS_PADDING;
      const signWith = (salt: number) => (input: Buffer) => sign('sha256', input, { key, padding, saltLength: salt });
      expect(() => verify('PS256', { sign: signWith(32) })).not.toThrow();
      expect(() => verify('PS256', { sign: signWith(saltLength) })).toThrow(BAD);
    },
  );

  it.each(['RS256', 'PS256'])('%s: refuses a signature without its leading zero byte (RFC 8017 section 8)', (alg) => {
    // One signature in 256 begins with a zero byte.
    let [input, bytes] = ['', Buffer.of(1)];
    for (let jti = 0; bytes[0] !== 0; jti++) {
      const raw = token({ key: testKey(alg), claims: { jti: `${jti}` } });
      input = raw.slice(0, raw.lastIndexOf('.'));
      bytes = Buffer.from(raw.slice(input.length + 1), 'base64url');
    }
    expect(() => verifyRaw(alg, `${input}.${bytes.toString('base64url')}`)).not.toThrow();
    expect(() => verifyRaw(alg, `${input}.${bytes.subarray(1).toString('base64url')}`)).toThrow(BAD);
  });

  it('keeps for operators what the library says of a key that cannot verify', () => {
    const raw = parseToken(token());
    expect(() => verifySignature(raw, createSecretKey(Buffer.alloc(32)), 'ES256')).toThrow(
      expect.objectContaining({
        reason: 'bad_signature',
        cause: expect.objectContaining({ code: 'ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE' }),
      }),
    );
  });
});
