import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { importKey, toVerificationKey, unsuitable } from '../../../src/token/keys/key-set';
import type { VerificationKey } from '../../../src/token/keys/key-set';
import type { JsonObject } from '../../../src/token/strict-json';
import { testKey } from '../../support/keys';

const EC = testKey().jwk;
/** An RSA key of 2048 bits with an exponent of our own: no primes, and nothing is signed with it. */
const rsa = (e: string, bits = 2048): JsonObject => {
  const modulus = Buffer.alloc(bits / 8, 0xff);
  return { kty: 'RSA', n: modulus.toString('base64url'), e };
};
const judged = (jwk: JsonObject): unknown => importKey(jwk);

describe('unsuitable: what the members of a JWK say (RFC 7517 section 4)', () => {
  it.each<[string, unknown]>([
    ['an EC key with everything', EC],
    ['its bare material', { kty: 'EC', crv: 'P-256' }],
    ['an RSA key', { kty: 'RSA' }],
    ['an Ed25519 key', { kty: 'OKP' }],
    ['verify among the key_ops', { kty: 'EC', key_ops: ['sign', 'verify'] }],
    ['EdDSA', { kty: 'OKP', alg: 'EdDSA' }],
    ['members that are there without a value', { kty: 'EC', use: undefined, kid: undefined, alg: undefined }],
  ])('has nothing against %s', (_what, jwk) => {
    expect(unsuitable(jwk)).toBeUndefined();
  });

  it.each<[string, unknown, string]>([
    ['undefined', undefined, 'it is not an object'],
    ['null', null, 'it is not an object'],
    ['an array', [], 'it is not an object'],
    ['an array that looks like a key', Object.assign([], EC), 'it is not an object'],
    ['no kty', {}, 'its kty must be RSA, EC or OKP'],
    ['a secret', { kty: 'oct' }, 'its kty must be RSA, EC or OKP'],
    ['kty in another case', { kty: 'ec' }, 'its kty must be RSA, EC or OKP'],
    ['a private key', { ...EC, d: '' }, 'it is a private key'],
    ['use: enc', { ...EC, use: 'enc' }, 'its use is not sig'],
    ['use: null', { ...EC, use: null }, 'its use is not sig'],
    ['key_ops without verify', { ...EC, key_ops: [] }, 'its key_ops lack verify'],
    ['key_ops that are a string', { ...EC, key_ops: 'verify' }, 'its key_ops lack verify'],
    ['a number as kid', { ...EC, kid: 7 }, 'its kid is not a non-empty string'],
    ['alg: none', { ...EC, alg: 'none' }, 'its alg is not a known signature algorithm'],
    ['alg in an array', { ...EC, alg: ['ES256'] }, 'its alg is not a known signature algorithm'],
  ])('says what is wrong with %s', (_what, jwk, why) => {
    expect(unsuitable(jwk)).toBe(why);
  });
});

describe('toVerificationKey: what the key material says', () => {
  it('takes the algorithm that the JWK names, and that one alone', () => {
    expect(judged({ ...rsa('AQAB'), alg: 'PS384', kid: 'a' })).toEqual({
      keyId: 'a',
      algorithms: ['PS384'],
      key: expect.objectContaining({ type: 'public' }),
    });
  });

  it.each<[string, JsonObject, readonly string[]]>([
    ['RSA', rsa('AQAB'), ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
    ['P-256', testKey('ES256').jwk, ['ES256']],
    ['P-384', testKey('ES384').jwk, ['ES384']],
    ['P-521', testKey('ES512').jwk, ['ES512']],
    ['Ed25519', testKey('EdDSA').jwk, ['EdDSA', 'Ed25519']],
  ])('without an alg, %s is good for what its type and curve allow', (_what, jwk, algorithms) => {
    expect(judged({ ...jwk, alg: undefined })).toMatchObject({ algorithms });
  });

  it.each<[string, JsonObject, string]>([
    [
      '2047 bits',
      { ...rsa('AQAB'), n: Buffer.alloc(256, 0x7f).toString('base64url') },
      'its modulus has less than 2048 bits',
    ],
    ['e = 1', rsa('AQ'), 'its exponent is weak'],
    ['e = 2', rsa('Ag'), 'its exponent is weak'],
    ['e = 65536', rsa('AQAA'), 'its exponent is weak'],
    ['e = 2^32 + 1', rsa('AQAAAAE'), 'its exponent is larger than 2^32'],
    ['an exponent as long as the modulus', { ...rsa(''), e: rsa('')['n'] }, 'its exponent is larger than 2^32'],
    ['8200 bits', rsa('AQAB', 8_200), 'its modulus has more than 8192 bits'],
    [
      'an alg of another type',
      { ...rsa('AQAB'), alg: 'ES256' },
      'its type or curve does not fit any accepted algorithm',
    ],
  ])('refuses %s', (_what, jwk, why) => {
    expect(judged(jwk)).toBe(why);
  });

  it.each([
    ['e = 3', 'Aw'],
    ['e = 65537', 'AQAB'],
    ['e = 2^32 - 1', '_____w'],
  ])('accepts 2048 bits with %s', (_what, e) => {
    expect(judged(rsa(e))).toMatchObject({ keyId: undefined });
  });

  it('accepts 8192 bits, and fewer where it is told so', () => {
    const jwk = rsa('AQAB', 8_192);
    expect(judged(jwk)).toMatchObject({ keyId: undefined });
    expect(importKey(jwk, 8_191)).toBe('its modulus has more than 8191 bits');
  });

  it('refuses a curve that no algorithm is for', () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'secp256k1' });
    expect(toVerificationKey({ kty: 'EC' }, publicKey)).toBe('its type or curve does not fit any accepted algorithm');
  });
});

describe('importKey', () => {
  it('makes the key that the members describe', () => {
    const expected = createPublicKey(testKey().privateKey).export({ format: 'jwk' });
    expect((importKey(EC) as VerificationKey).key.export({ format: 'jwk' })).toEqual(expected);
  });

  it.each<[string, JsonObject]>([
    ['a point off its curve', { ...EC, x: EC['y'] }],
    ['no material at all', { kty: 'EC' }],
    ['a number in place of a modulus', { kty: 'RSA', n: 1, e: 'AQAB' }],
  ])('says that the material is broken: %s', (_what, jwk) => {
    expect(importKey(jwk)).toBe('its key material is broken');
  });
});
