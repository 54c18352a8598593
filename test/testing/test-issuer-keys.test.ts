import { createTestIssuer } from '../../src/testing/index';
import { guardedApp } from './guarded-app';

const scope = 'orders:read';

describe('rotate() and removeKey()', () => {
  it('sign with a new key that the gate knows immediately, next to the earlier one', async () => {
    const issuer = createTestIssuer();
    const { outcome, gate } = guardedApp(issuer.options);
    const [first, before] = [issuer.keyId, issuer.token({ scope })];
    expect(await outcome(before)).toBe('200');
    const second = issuer.rotate();
    expect([issuer.keyId, second === first]).toEqual([second, false]);
    expect(await outcome(issuer.token({ scope }))).toBe('200');
    expect(await outcome(before)).toBe('200');
    expect(gate.status().issuers[0]?.keys).toEqual({ state: 'fresh', keys: 2 });
  });

  it('remove every key that no longer signs', async () => {
    const issuer = createTestIssuer();
    const { outcome } = guardedApp(issuer.options);
    const first = issuer.token({ scope });
    issuer.rotate();
    const second = issuer.token({ scope });
    issuer.rotate();
    expect([await outcome(first), await outcome(second)]).toEqual(['200', '200']);
    issuer.removeKey();
    expect([await outcome(first), await outcome(second)]).toEqual(['401 unknown_key', '401 unknown_key']);
    expect(await outcome(issuer.token({ scope }))).toBe('200');
  });

  it('remove one key by its id', async () => {
    const issuer = createTestIssuer();
    const { outcome } = guardedApp(issuer.options);
    const [firstKey, first] = [issuer.keyId, issuer.token({ scope })];
    issuer.rotate();
    const second = issuer.token({ scope });
    issuer.rotate();
    issuer.removeKey(firstKey);
    expect([await outcome(first), await outcome(second)]).toEqual(['401 unknown_key', '200']);
  });

  it('never leave the issuer without a key', () => {
    const issuer = createTestIssuer();
    expect(() => issuer.removeKey()).toThrow('removeKey(): the only key is the one that signs; rotate() first');
    expect(() => issuer.removeKey(issuer.keyId)).toThrow('removeKey(): this key signs; rotate() first');
    const first = issuer.keyId;
    issuer.rotate();
    expect(() => issuer.removeKey('k1')).toThrow(`removeKey(): no key "k1" is published; known are ${first}`);
  });

  it('keep the key set in the options current', () => {
    const issuer = createTestIssuer();
    const { keys } = issuer.options;
    issuer.rotate();
    expect(keys).toMatchObject({ keys: [{ alg: 'ES256', use: 'sig' }, { kid: issuer.keyId }] });
    expect(JSON.stringify(keys)).not.toContain('"d"');
  });
});
