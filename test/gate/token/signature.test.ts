import { constants, createSecretKey, sign, createPublicKey, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { AuthError } from '../../../src/gate/core/errors';
import {
  ALGORITHMS,
  isCompatible,
  verificationCostUs,
  verifySignature,
  verifySignatureInPool,
} from '../../../src/gate/token/signature';
import type { Algorithm } from '../../../src/gate/token/signature';
import { importKey } from '../../../src/gate/token/keys/key-set';
import { parseToken } from '../../../src/gate/token/jws';
import { token } from '../../support/issuer';
import type { TokenParts } from '../../support/issuer';
import { newKey, testKey } from '../../support/keys';

const BAD = expect.objectContaining({ name: 'AuthError', reason: 'bad_signature' });

/** Verifies with the published half of the key of that algorithm. */
function verifyRaw(alg: string, raw: string, as = alg): void {
  verifySignature(parseToken(raw), publishedKey(alg), as as Algorithm);
}

function publishedKey(alg: string): KeyObject {
  const key = importKey(testKey(alg).jwk);
  if (typeof key === 'string') throw new Error(key);
  return key.key;
}

function verify(alg: string, parts: TokenParts, as = alg): void {
  verifyRaw(alg, token({ key: testKey(alg), ...parts }), as);
}

/** What is signed, and the bytes of the signature. */
function apart(raw: string): [input: string, signature: Buffer] {
  const end = raw.lastIndexOf('.');
  return [raw.slice(0, end), Buffer.from(raw.slice(end + 1), 'base64url')];
}

/** `good`, or the reason of the refusal: on the event loop, and in the thread pool. */
async function verdicts(raw: string, key: KeyObject, algorithm: Algorithm): Promise<readonly unknown[]> {
  const works = [verifySignature, verifySignatureInPool];
  return Promise.all(
    works.map((work) =>
      Promise.resolve()
        .then(() => work(parseToken(raw), key, algorithm))
        .then(
          () => 'good',
          (error: unknown) => (error as AuthError).reason,
        ),
    ),
  );
}

describe('verifySignature', () => {
  it.each(ALGORITHMS)(
    '%s: accepts the signature of its key, on the event loop and in the pool, and no other',
    async (alg) => {
      const key = publishedKey(alg);
      const [input, bytes] = apart(token({ key: testKey(alg) }));
      const [, ofAnother] = apart(token({ key: newKey(alg) }));
      const raw = (signature: Buffer): string => `${input}.${signature.toString('base64url')}`;
      expect(await verdicts(raw(bytes), key, alg)).toEqual(['good', 'good']);
      const zero = Buffer.of(0);
      const flipped = Buffer.from(bytes);
      flipped.writeUInt8(flipped.readUInt8(0) ^ 1);
      const others = [ofAnother, bytes.subarray(1), bytes.subarray(0, -1), flipped, Buffer.alloc(bytes.length)];
      for (const other of [...others, Buffer.concat([bytes, zero]), Buffer.concat([zero, bytes])]) {
        expect(await verdicts(raw(other), key, alg)).toEqual(['bad_signature', 'bad_signature']);
      }
      const secret = createSecretKey(Buffer.alloc(32));
      expect(await verdicts(raw(bytes), secret, alg)).toEqual(['bad_signature', 'bad_signature']);
    },
  );

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
    let [input, bytes]: [string, Buffer] = ['', Buffer.of(1)];
    for (let jti = 0; bytes[0] !== 0; jti++) {
      [input, bytes] = apart(token({ key: testKey(alg), claims: { jti: `${jti}` } }));
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

describe('the cost of a verification', () => {
  it.each<[Algorithm, number]>([
    ['RS256', 45],
    ['ES256', 100],
    ['EdDSA', 130],
    ['ES384', 700],
    ['ES512', 1_500],
  ])('%s: is that of its kind of key', (alg, costUs) => {
    expect(verificationCostUs(createPublicKey(testKey(alg).privateKey))).toBe(costUs);
  });

  it.each([
    [2048, 65_537n, 45],
    [3072, 65_537n, 101],
    [4096, 65_537n, 180],
    [8192, 65_537n, 720],
    [8192, 2n ** 32n - 1n, 1_355],
    [2048, 3n, 45],
  ])('RSA of %i bits with the exponent %i grows with both', (modulusLength, publicExponent, costUs) => {
    const key = { asymmetricKeyType: 'rsa', asymmetricKeyDetails: { modulusLength, publicExponent } };
    expect(verificationCostUs(key as KeyObject)).toBe(costUs);
  });
});

describe('the algorithms of a key', () => {
  function rsaPss(hash?: string): KeyObject {
    const parameters = hash === undefined ? {} : { hashAlgorithm: hash, mgf1HashAlgorithm: hash };
    return generateKeyPairSync('rsa-pss', { modulusLength: 512 * 2, ...parameters }).publicKey;
  }

  it.each<[string, () => KeyObject, readonly string[]]>([
    ['RSA', () => testKey('RS256').privateKey, ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
    ['RSA-PSS without parameters', () => rsaPss(), ['PS256', 'PS384', 'PS512']],
    ['RSA-PSS bound to SHA-384', () => rsaPss('sha384'), ['PS384']],
    ['P-256', () => testKey('ES256').privateKey, ['ES256']],
    ['P-384', () => testKey('ES384').privateKey, ['ES384']],
    ['P-521', () => testKey('ES512').privateKey, ['ES512']],
    ['Ed25519', () => testKey('EdDSA').privateKey, ['EdDSA', 'Ed25519']],
    ['Ed448', () => generateKeyPairSync('ed448').publicKey, []],
    ['a secp256k1 key', () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey, []],
    ['X25519', () => generateKeyPairSync('x25519').publicKey, []],
  ])(
    'a key of type %s can verify exactly the algorithms of its type, curve and parameters',
    (_type, make, expected) => {
      const key = make();
      expect(ALGORITHMS.filter((algorithm) => isCompatible(key, algorithm)).sort()).toEqual([...expected].sort());
    },
  );
});
