import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { AuthError } from '../../../../src/gate/core/errors';
import type { Algorithm } from '../../../../src/gate/token/signature';
import { KeySet, importKey, toVerificationKey, unsuitable, staticKeys } from '../../../../src/gate/token/keys/key-set';
import type { VerificationKey, Jwks } from '../../../../src/gate/token/keys/key-set';
import { testKey, jwks, newKey } from '../../../support/keys';
import type { JsonObject } from '../../../../src/gate/net/strict-json';

const key = (keyId: string | undefined, ...algorithms: Algorithm[]): VerificationKey => ({
  keyId,
  algorithms,
  key: testKey().privateKey,
  costUs: 50,
  tenant: undefined,
});
const otherAlgorithm = new AuthError('algorithm_not_allowed');

describe('KeySet', () => {
  const [ec, rsa, twin] = [key('a', 'ES256'), key('b', 'RS256', 'PS256'), key('a', 'RS256')];

  it('finds a key by its id', () => {
    const keys = new KeySet([ec, rsa]);
    expect(keys.find({ keyId: 'a', algorithm: 'ES256' })).toBe(ec);
    expect(keys.find({ keyId: 'b', algorithm: 'PS256' })).toBe(rsa);
    expect(keys.find({ keyId: 'c', algorithm: 'ES256' })).toBeUndefined();
  });

  it('tells two keys of one id apart by their algorithms, and takes neither where that fails', () => {
    const keys = new KeySet([ec, twin, rsa]);
    expect(keys.find({ keyId: 'a', algorithm: 'ES256' })).toBe(ec);
    expect(keys.find({ keyId: 'a', algorithm: 'RS256' })).toBe(twin);
    const ambiguous = new KeySet([ec, key('a', 'ES256')]);
    expect(() => ambiguous.find({ keyId: 'a', algorithm: 'ES256' })).toThrow(new AuthError('unusable_key'));
  });

  it('takes the key for a token without kid where there is no choice, whatever its id', () => {
    expect(new KeySet([ec, rsa]).find({ keyId: undefined, algorithm: 'ES256' })).toBe(ec);
    expect(new KeySet([rsa, twin]).find({ keyId: undefined, algorithm: 'RS256' })).toBeUndefined();
    expect(new KeySet([]).find({ keyId: undefined, algorithm: 'RS256' })).toBeUndefined();
  });

  it('never takes a key without id for a token that names one', () => {
    expect(new KeySet([key(undefined, 'ES256')]).find({ keyId: 'a', algorithm: 'ES256' })).toBeUndefined();
  });

  it.each(['a', undefined])(
    'refuses the algorithm where no key of kid %s is for it, and says which to operators',
    (keyId) => {
      const find = (): unknown => new KeySet([ec]).find({ keyId, algorithm: 'RS256' });
      expect(find).toThrow(otherAlgorithm);
      expect(find).toThrow(
        expect.objectContaining({ reason: 'algorithm_not_allowed', privateDetail: 'the key is not for RS256' }),
      );
    },
  );

  it('counts a key that is given twice once, and knows it by identity', () => {
    const keys = new KeySet([ec, ec]);
    expect(keys.size).toBe(1);
    expect(keys.find({ keyId: 'a', algorithm: 'ES256' })).toBe(ec);
    expect([keys.has(ec), keys.has({ ...ec }), keys.has(rsa)]).toEqual([true, false, false]);
  });
});

const EC = testKey().jwk;
/** An RSA key of 2048 bits with an exponent of our own: no primes, and nothing is signed with it. */
const rsa = (e: string, bits = 2048): JsonObject => {
  const modulus = Buffer.alloc(bits / 8, 0xff);
  return { kty: 'RSA', n: modulus.toString('base64url'), e };
};
const SHORT = Buffer.alloc(256, 0x7f).toString('base64url');
const FITS_NONE = 'its type or curve does not fit any accepted algorithm';
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
      costUs: expect.any(Number),
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
    ['2047 bits', { ...rsa('AQAB'), n: SHORT }, 'its modulus has less than 2048 bits'],
    ['e = 1', rsa('AQ'), 'its exponent is weak'],
    ['e = 2', rsa('Ag'), 'its exponent is weak'],
    ['e = 65536', rsa('AQAA'), 'its exponent is weak'],
    ['e = 2^32 + 1', rsa('AQAAAAE'), 'its exponent is larger than 2^32'],
    ['an exponent as long as the modulus', { ...rsa(''), e: rsa('')['n'] }, 'its exponent is larger than 2^32'],
    ['8200 bits', rsa('AQAB', 8_200), 'its modulus has more than 8192 bits'],
    ['an alg of another type', { ...rsa('AQAB'), alg: 'ES256' }, FITS_NONE],
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
    expect(toVerificationKey({ kty: 'EC' }, publicKey)).toBe(FITS_NONE);
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

/** Nothing is wrong with the token but its key. */
const noFault = (): number => 0;

describe('staticKeys', () => {
  const key = testKey();

  it.each<[string, Jwks]>([
    ['a key set', jwks(key)],
    ['the keys of a key set alone', [key.jwk]],
  ])('takes %s', (_what, given) => {
    const source = staticKeys(given);
    const found = source.find({ algorithm: 'ES256', keyId: key.kid }, noFault);
    expect(found).toMatchObject({ keyId: key.kid, algorithms: ['ES256'] });
    expect(source.status()).toEqual({ state: 'fresh', keys: 1 });
    expect(source.ready()).toBeInstanceOf(Promise);
  });

  const refused: readonly [string, unknown, string][] = [
    ['a private key', { ...key.jwk, d: 'AAAA' }, 'it is a private key'],
    ['an empty kid', { ...key.jwk, kid: '' }, 'its kid is not a non-empty string'],
    ['an X25519 key', { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) }, FITS_NONE],
    ['null', null, 'it is not an object'],
  ];
  it.each(refused)('refuses %s at construction: somebody chose these keys', (_what, jwk, why) => {
    const make = (): unknown => staticKeys([key.jwk, jwk] as Jwks);
    expect(make).toThrow(new TypeError(`authenticate(): option "keys": key 1 cannot verify tokens: ${why}`));
  });

  it.each([[[]], [{ keys: [] }], [{}], [{ keys: 'all' }]])('refuses %j', (given) => {
    const message = 'authenticate(): option "keys" must be a JSON Web Key Set with at least one key';
    expect(() => staticKeys(given as Jwks)).toThrow(new TypeError(message));
  });

  it('takes another list that is put into the key set, and asks it about keys found before', () => {
    const [first, second] = [newKey('ES256', 'first'), newKey('ES256', 'second')];
    const given = { keys: [first.jwk] };
    const source = staticKeys(given);
    const found = source.find({ algorithm: 'ES256', keyId: 'first' }, noFault) as VerificationKey;
    expect(source.has(found)).toBe(true);
    given.keys = [second.jwk];
    expect(source.has(found)).toBe(false);
    expect(source.find({ algorithm: 'ES256', keyId: 'second' }, noFault)).toMatchObject({ keyId: 'second' });
    expect(() => source.find({ algorithm: 'ES256', keyId: 'first' }, noFault)).toThrow(new AuthError('unknown_key'));
  });

  it('checks the token before it refuses an unknown key, and only then', () => {
    const source = staticKeys(jwks(key));
    const expired = (): never => {
      throw new AuthError('expired');
    };
    expect(() => source.find({ algorithm: 'ES256', keyId: 'other' }, expired)).toThrow(new AuthError('expired'));
    expect(source.find({ algorithm: 'ES256', keyId: key.kid }, expired)).toMatchObject({ keyId: key.kid });
  });

  it('uses none of several keys that have one kid and one algorithm', () => {
    const source = staticKeys(jwks(key, newKey('ES256', key.kid)));
    const find = (): unknown => source.find({ algorithm: 'ES256', keyId: key.kid }, noFault);
    expect(find).toThrow(
      new AuthError('unusable_key', { privateDetail: 'the key set has several keys with its kid for ES256' }),
    );
  });

  it('refuses a list that is put there and cannot be used, every time', () => {
    const given: { keys: object[] } = { keys: [key.jwk] };
    const source = staticKeys(given);
    given.keys = [];
    for (let call = 0; call < 2; call++) {
      expect(() => source.find({ algorithm: 'ES256', keyId: key.kid }, noFault)).toThrow(TypeError);
    }
  });
});
