import { AuthError } from '../../../src/core/auth-error';
import type { VerificationKey } from '../../../src/token/keys/key-set';
import { staticKeys } from '../../../src/token/keys/key-set';
import type { Jwks } from '../../../src/token/keys/key-set';
import { jwks, newKey, testKey } from '../../support/keys';

/** Nothing is wrong with the token but its key. */
const noFault = (): void => undefined;

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
    ['an oct key', { kty: 'oct', k: 'AAAA' }, 'its kty must be RSA, EC or OKP'],
    ['a key for encryption', { ...key.jwk, use: 'enc' }, 'its use is not sig'],
    ['a key whose key_ops lack verify', { ...key.jwk, key_ops: ['sign'] }, 'its key_ops lack verify'],
    ['a kid that is a number', { ...key.jwk, kid: 1 }, 'its kid is not a non-empty string'],
    ['an empty kid', { ...key.jwk, kid: '' }, 'its kid is not a non-empty string'],
    ['an HMAC alg', { ...key.jwk, alg: 'HS256' }, 'its alg is not a known signature algorithm'],
    ['an alg of another curve', { ...key.jwk, alg: 'ES384' }, 'its type or curve does not fit any accepted algorithm'],
    ['a point off its curve', { ...key.jwk, x: key.jwk['y'] }, 'its key material is broken'],
    [
      'an X25519 key',
      { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) },
      'its type or curve does not fit any accepted algorithm',
    ],
    [
      'an RSA key of 1024 bits',
      newKey('RS256', 'short', { modulusLength: 1024 }).jwk,
      'its modulus has less than 2048 bits',
    ],
    ['an RSA key with e = 1', { ...testKey('RS256').jwk, e: 'AQ' }, 'its exponent is weak'],
    ['an RSA key with an even e', { ...testKey('RS256').jwk, e: 'BA' }, 'its exponent is weak'],
    ['null', null, 'it is not an object'],
    ['a string', 'key', 'it is not an object'],
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
