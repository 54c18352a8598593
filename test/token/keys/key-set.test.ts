import { AuthError } from '../../../src/core/auth-error';
import type { Algorithm } from '../../../src/token/signature';
import type { VerificationKey } from '../../../src/token/keys/key-set';
import { KeySet } from '../../../src/token/keys/key-set';
import { testKey } from '../../support/keys';

const key = (keyId: string | undefined, ...algorithms: Algorithm[]): VerificationKey => ({
  keyId,
  algorithms,
  key: testKey().privateKey,
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
