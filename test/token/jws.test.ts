import type { AuthError } from '../../src/core/auth-error';
import { ALGORITHMS } from '../../src/token/signature';
import { checkHeader, parseToken } from '../../src/token/jws';
import { base64url, goodClaims, token } from '../support/issuer';
import { testKey } from '../support/keys';

/** What an action returns, or the reason of the refusal with what operators are told. */
function outcome(action: () => unknown): unknown {
  try {
    return action();
  } catch (error) {
    const { reason, privateDetail } = error as AuthError;
    return [reason, privateDetail];
  }
}

const [header, payload, signature] = ['{"alg":"ES256"}', '{"iss":"x"}', 'signature'].map(base64url) as [
  string,
  string,
  string,
];

describe('parseToken', () => {
  it('takes a token apart', () => {
    const raw = token();
    const [first, second, third] = raw.split('.') as [string, string, string];
    expect(parseToken(raw)).toEqual({
      raw,
      header: { typ: 'at+jwt', alg: 'ES256', kid: testKey().kid },
      claims: goodClaims(),
      signingInput: `${first}.${second}`,
      signature: Buffer.from(third, 'base64url'),
    });
  });

  it('accepts 16384 characters, and not one more', () => {
    const rest = `${header}.${payload}.`;
    const ofLength = (length: number): string => rest + 'A'.repeat(length - rest.length);
    // Not every length can be base64url: this one and four more can.
    const longest = [16_384, 16_383, 16_382].find((length) => (length - rest.length) % 4 !== 1) as number;
    expect(outcome(() => parseToken(ofLength(longest)))).toMatchObject({ header: { alg: 'ES256' } });
    expect(outcome(() => parseToken(ofLength(16_385)))).toEqual(['malformed_token', 'longer than 16384 characters']);
  });

  it.each<[string, string, string]>([
    ['nothing', '', '1 parts instead of 3'],
    ['two parts', `${header}.${payload}`, '2 parts instead of 3'],
    ['four parts', `${header}.${payload}.${signature}.`, '4 parts instead of 3'],
    ['an empty header', `.${payload}.${signature}`, 'the header is not base64url'],
    ['an empty payload', `${header}..${signature}`, 'the payload is not base64url'],
    ['an empty signature', `${header}.${payload}.`, 'the signature is not base64url'],
    ['a padded header', `${header}=.${payload}.${signature}`, 'the header is not base64url'],
    ['a blank in the payload', `${header}.${payload} .${signature}`, 'the payload is not base64url'],
    ['base64 in place of base64url', `${header}.${payload}.a+/b`, 'the signature is not base64url'],
    ['bits left over', `${header}.${payload}.AB`, 'the signature is not base64url'],
    ['a header that is not JSON', `AAAA.${payload}.${signature}`, 'the header is not a strict JSON object'],
    [
      'a payload that is an array',
      `${header}.${base64url('[]')}.${signature}`,
      'the payload is not a strict JSON object',
    ],
  ])('refuses %s and says to operators what is wrong', (_what, raw, privateDetail) => {
    expect(outcome(() => parseToken(raw))).toEqual(['malformed_token', privateDetail]);
  });

  it('refuses a header each time that it comes', () => {
    for (let time = 0; time < 2; time++) {
      expect(outcome(() => parseToken(`e30x.${payload}.${signature}`))).toMatchObject([
        'malformed_token',
        expect.any(String),
      ]);
    }
  });

  it('reads the header that tokens of one key share once, and returns it frozen', () => {
    const [one, other] = [parseToken(token()), parseToken(token({ claims: { jti: 'other' } }))];
    expect(other.header).toBe(one.header);
    expect(Object.isFrozen(one.header)).toBe(true);
    expect(other.claims).not.toEqual(one.claims);
  });

  it.each([
    [512, true],
    [514, false],
  ])('of a header of %i characters, it is %s that it is kept', (length, kept) => {
    const members = { alg: 'ES256', filler: '' };
    const bytes = Math.floor((length * 3) / 4);
    members.filler = 'x'.repeat(bytes - JSON.stringify(members).length);
    const part = base64url(JSON.stringify(members));
    expect(part).toHaveLength(length);
    const read = (): unknown => parseToken(`${part}.${payload}.${signature}`).header;
    expect(read() === read()).toBe(kept);
  });

  it('keeps two headers apart', () => {
    const read = (text: string): unknown => parseToken(`${base64url(text)}.${payload}.${signature}`).header;
    expect([read('{"alg":"RS256"}'), read('{"alg":"PS256"}')]).toEqual([{ alg: 'RS256' }, { alg: 'PS256' }]);
  });
});

describe('checkHeader', () => {
  const accepted = { algorithms: new Set(ALGORITHMS), types: new Set(['at+jwt']) };
  const untyped = { algorithms: new Set(ALGORITHMS), types: new Set([undefined]) };
  const good = { alg: 'ES256', typ: 'at+jwt', kid: 'a' };
  const check = (changes: object, rules: Parameters<typeof checkHeader>[1] = accepted): unknown =>
    outcome(() => checkHeader({ ...good, ...changes }, rules));

  it.each<[string, object, object]>([
    ['the usual members', {}, { algorithm: 'ES256', keyId: 'a' }],
    ['no kid', { kid: undefined }, { algorithm: 'ES256', keyId: undefined }],
    ['an empty kid', { kid: '' }, { algorithm: 'ES256', keyId: '' }],
    ['the longest kid', { kid: 'k'.repeat(1_024) }, { algorithm: 'ES256', keyId: 'k'.repeat(1_024) }],
    ['a typ spelt out in full', { typ: 'Application/AT+JWT' }, { algorithm: 'ES256', keyId: 'a' }],
    ['members that it does not know', { x: 1, jku: 'https://evil.test' }, { algorithm: 'ES256', keyId: 'a' }],
  ])('accepts %s', (_what, changes, read) => {
    expect(check(changes)).toEqual(read);
  });

  it('accepts a header without typ where that is accepted, and only there', () => {
    expect(check({ typ: undefined }, untyped)).toEqual({ algorithm: 'ES256', keyId: 'a' });
    expect(check({ typ: undefined })).toEqual(['wrong_type', undefined]);
    expect(check({}, untyped)).toEqual(['wrong_type', undefined]);
  });

  it.each<[string, object, string, string | undefined]>([
    ['no alg', { alg: undefined }, 'malformed_token', 'alg is not a string'],
    ['alg in an array', { alg: ['ES256'] }, 'malformed_token', 'alg is not a string'],
    ['none', { alg: 'none' }, 'algorithm_not_allowed', undefined],
    ['HS256', { alg: 'HS256' }, 'algorithm_not_allowed', undefined],
    ['another case', { alg: 'es256' }, 'algorithm_not_allowed', undefined],
    ['crit', { crit: [] }, 'unsupported_critical_header', undefined],
    ['crit without a value', { crit: undefined }, 'unsupported_critical_header', undefined],
    ['b64', { b64: true }, 'unsupported_critical_header', undefined],
    ['typ that is not a string', { typ: 17 }, 'malformed_token', 'typ is not a string'],
    ['typ null', { typ: null }, 'malformed_token', 'typ is not a string'],
    ['another typ', { typ: 'jwt' }, 'wrong_type', undefined],
    ['a media type of another tree', { typ: 'text/at+jwt' }, 'wrong_type', undefined],
    ['application/ in the middle', { typ: 'at+application/jwt' }, 'wrong_type', undefined],
    ['application/ after something', { typ: 'xapplication/at+jwt' }, 'wrong_type', undefined],
    ['a kid that is not a string', { kid: 17 }, 'malformed_token', 'kid is not a string of at most 1024 characters'],
    ['kid null', { kid: null }, 'malformed_token', 'kid is not a string of at most 1024 characters'],
    ['a kid too long', { kid: 'k'.repeat(1_025) }, 'malformed_token', 'kid is not a string of at most 1024 characters'],
  ])('refuses %s', (_what, changes, reason, privateDetail) => {
    expect(check(changes)).toEqual([reason, privateDetail]);
  });

  it('refuses a known algorithm that is not accepted here', () => {
    const some = { ...accepted, algorithms: new Set(['RS256'] as const) };
    expect(check({}, some)).toEqual(['algorithm_not_allowed', undefined]);
  });

  it('judges alg, then crit, then typ, then kid', () => {
    const wrong = { alg: 'none', crit: [], typ: 17, kid: 17 };
    expect(check(wrong)).toEqual(['algorithm_not_allowed', undefined]);
    expect(check({ ...wrong, alg: 'ES256' })).toEqual(['unsupported_critical_header', undefined]);
    expect(check({ typ: 17, kid: 17 })).toEqual(['malformed_token', 'typ is not a string']);
  });
});
