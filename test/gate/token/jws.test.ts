import fc from 'fast-check';
import type { AuthError } from '../../../src/gate';
import { bearerToken } from '../../../src/gate/token/bearer';
import type { TokenRequest } from '../../../src/gate/token/bearer';
import { parseToken, checkHeader } from '../../../src/gate/token/jws';
import { token, base64url, goodClaims } from '../../support/issuer';
import { ALGORITHMS } from '../../../src/gate/token/signature';
import { testKey } from '../../support/keys';

/** What an action returns, or the reason of the refusal with what operators are told. */
function outcome(action: () => unknown): unknown {
  try {
    return action();
  } catch (error) {
    const { reason, privateDetail } = error as AuthError;
    return [reason, privateDetail];
  }
}

const bearerOf = (request: TokenRequest): unknown => outcome(() => bearerToken(request));
const withHeader = (authorization: unknown): TokenRequest => ({ headers: { authorization } as never });

it('bearerToken() works without url, rawHeaders and body', () => {
  expect(bearerOf(withHeader('Bearer abc.def.ghi'))).toBe('abc.def.ghi');
});

it('bearerToken() does not take a minute for a hostile header', () => {
  const before = process.cpuUsage();
  const [equals, blanks, commas] = ['=', ' ', ','].map((each) => each.repeat(60_000));
  for (const hostile of [`Bearer ${equals}x`, 'a '.repeat(30_000), `Bearer${blanks}\t`, `x ${commas}`]) {
    bearerOf(withHeader(hostile));
  }
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(2_000);
});

describe('bearerToken: the header to the character (RFC 9110 section 11.4, RFC 6750 section 2.1)', () => {
  const notOne = ['malformed_authorization', 'not one scheme with its credentials'];
  const noText = ['malformed_authorization', 'the Authorization header is not a string'];
  const noToken = ['malformed_authorization', 'no single b64token after "Bearer"'];

  it.each<[string, unknown, unknown]>([
    ['one blank', 'Bearer abc', 'abc'],
    ['two blanks', 'Bearer  abc', 'abc'],
    ['a token of one character', 'bearer a', 'a'],
    ['padding', 'bearer a==', 'a=='],
    ['padding alone', 'Bearer =', noToken],
    ['no token', 'Bearer ', noToken],
    ...['[object Object]', '${token}', '{{token}}', '$TOKEN'].map((text) => {
      const detail = `the client sent the text ${text}: it had no token`;
      return [text, `Bearer ${text}`, ['malformed_authorization', detail]] as [string, unknown, unknown];
    }),
    ['braces around a token', 'Bearer {eyJhbGciOi}1', noToken],
    ['the scheme alone', 'Bearer', noToken],
    ['a blank at the end', 'Bearer abc ', noToken],
    ['a tab after the scheme', 'Bearer\tabc', notOne],
    ['a tab after another scheme', 'Basic\tabc', notOne],
    ['a blank before the scheme', ' Bearer abc', notOne],
    ['nothing', '', notOne],
    ['bearer after a comma, at the end', 'Basic x,bearer', notOne],
    ['bearer after a comma and blanks', 'Basic x,  Bearer y', notOne],
    ['a name that begins with bearer after a comma', 'Digest x,bearers=1', ['missing_token', undefined]],
    ['another scheme', 'Basic abc', ['missing_token', undefined]],
    ['a line break, which no HTTP parser lets through', 'Bearer abc\r\nX: y', noToken],
    ['no text', 17, noText],
    ['an array of one', ['Bearer x'], noText],
    ['an array of two', ['Bearer x', 'Bearer y'], noText],
    ['an empty array', [], noText],
    ['null', null, noText],
    ['an object', { toString: () => 'Bearer x' }, noText],
    ['true', true, noText],
  ])('%s', (_what, header, expected) => {
    expect(bearerOf(withHeader(header))).toEqual(expected);
  });

  const twice = ['malformed_authorization', 'more than one Authorization header'];
  it.each<[string, readonly string[], unknown]>([
    ['one header', ['Host', 'x', 'Authorization', 'Bearer abc'], 'abc'],
    ['a header whose value is the name', ['X-Name', 'Authorization', 'authorization', 'Bearer abc'], 'abc'],
    ['another header of that length', ['Authorizatiom', 'x', 'Authorization', 'Bearer abc'], 'abc'],
    ['two headers', ['Authorization', 'Bearer abc', 'Host', 'x', 'Authorization', 'Bearer xyz'], twice],
    ['two headers in another case', ['AUTHORIZATION', 'Bearer abc', 'authorization', 'Bearer abc'], twice],
    ['no header at all', [], 'abc'],
  ])('counts the headers as they came: %s', (_what, rawHeaders, expected) => {
    expect(bearerOf({ ...withHeader('Bearer abc'), rawHeaders })).toEqual(expected);
  });

  const form = 'application/x-www-form-urlencoded';
  it.each<[string, string | undefined, unknown, unknown]>([
    ['bytes', form, Buffer.from('access_token=x'), ['token_in_body', undefined]],
    ['an array in an object', form, { access_token: ['x'] }, ['token_in_body', undefined]],
    ['no prototype', form, Object.assign(Object.create(null), { access_token: 'x' }), ['token_in_body', undefined]],
    ['null', form, null, 'abc'],
    ['a number', form, 17, 'abc'],
    ['an empty object', form, {}, 'abc'],
    ['a member among others', form, { a: 1, access_token: 'x' }, ['token_in_body', undefined]],
    ['a percent sign and no token', form, 'note=100%25', 'abc'],
    ['an encoded name', form, 'a=1&%61ccess_token=x', ['token_in_body', undefined]],
    ['bytes beyond ASCII', form, Buffer.from('caf\u00e9=1&access_token=x'), ['token_in_body', undefined]],
    ['parameters after a blank', `${form} ; charset=utf-8`, 'access_token=x', ['token_in_body', undefined]],
    ['a type that begins alike', `${form}-not`, 'access_token=x', 'abc'],
    ['a type that contains it', `text/plain; was=${form}`, 'access_token=x', 'abc'],
    ['no type', undefined, 'access_token=x', 'abc'],
    ['names that contain it', form, 'access_tokens=1&note=access_token', 'abc'],
  ])('looks into form bodies alone: %s', (_what, type, body, expected) => {
    const headers = { authorization: 'Bearer abc', 'content-type': type };
    expect(bearerOf({ headers, body })).toEqual(expected);
  });

  it.each([
    ['/v1/orders', 'abc'],
    ['/v1/access_token=x', 'abc'],
    ['access_token=x', 'abc'],
    ['?', 'abc'],
    ['/v1/orders?note=%25', 'abc'],
    ['/v1/orders?my_access_token=1&access_tokens=2&q=access_token&%61=1', 'abc'],
    ['?access_token=x', ['token_in_query', undefined]],
    ['/v1/orders?a=b?c&access_token', ['token_in_query', undefined]],
  ])('looks into the query alone: %s', (url, expected) => {
    expect(bearerOf({ ...withHeader('Bearer abc'), url })).toEqual(expected);
  });
});

describe('headers that Node may have dropped', () => {
  const bearerAmong = (length: number, server?: object): unknown => {
    const rawHeaders = ['Authorization', 'Bearer abc', ...Array<string>(length - 2).fill('x')];
    return bearerOf({ ...withHeader('Bearer abc'), rawHeaders, socket: server && { server } });
  };
  const DROPPED = ['malformed_authorization', 'Node may have dropped headers'];

  it.each([
    [1_998, undefined, 'abc'],
    [2_000, undefined, DROPPED],
    [1_998, {}, 'abc'],
    [2_000, { maxHeadersCount: null }, DROPPED],
    [38, { maxHeadersCount: 20 }, 'abc'],
    [40, { maxHeadersCount: 20 }, DROPPED],
    [6_000, { maxHeadersCount: 0 }, 'abc'],
  ])('%i names and values, server %j: %s', (length, server, expected) => {
    expect(bearerAmong(length, server)).toEqual(expected);
  });
});

const [header, payload, signature] = ['{"alg":"ES256"}', '{"iss":"x"}', 'signature'].map(base64url) as [
  string,
  string,
  string,
];

describe('parseToken', () => {
  it('refuses more than 16384 characters before it looks at any of them', () => {
    const raw = token({ claims: { filler: 'x'.repeat(12_500) } });
    expect(raw.length).toBeGreaterThan(16_384);
    for (const long of [raw, '.'.repeat(10_000_000)]) {
      expect(outcome(() => parseToken(long))).toEqual(['malformed_token', 'longer than 16384 characters']);
    }
  });

  it('says what is wrong without repeating any of it', () => {
    const secret = Buffer.from('{"secret":').toString('base64url');
    const parse = () => parseToken(`${secret}.${secret}.${secret}`);
    expect(outcome(parse)).toEqual(['malformed_token', 'the header is not a strict JSON object']);
    expect(parse).toThrow(expect.not.objectContaining({ cause: expect.anything() }));
  });

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
    [
      'nothing',
      '',
      '1 parts instead of 3: opaque tokens need the option opaque; many servers make JWTs once the client asks for the audience or resource of this API',
    ],
    ['undefined', 'undefined', 'the client sent the text undefined: it had no token'],
    ['null', 'null', 'the client sent the text null: it had no token'],
    ['two parts', `${header}.${payload}`, '2 parts instead of 3'],
    ['four parts', `${header}.${payload}.${signature}.`, '4 parts instead of 3'],
    ['an empty header', `.${payload}.${signature}`, 'the header is not base64url'],
    ['an empty payload', `${header}..${signature}`, 'the payload is not base64url'],
    ['an empty signature', `${header}.${payload}.`, 'the signature is empty: the issuer has not signed the token'],
    ['a padded header', `${header}=.${payload}.${signature}`, 'the header is not base64url'],
    ['a blank in the payload', `${header}.${payload} .${signature}`, 'the payload is not base64url'],
    ['base64 in place of base64url', `${header}.${payload}.a+/b`, 'the signature is not base64url'],
    ['bits left over', `${header}.${payload}.AB`, 'the signature is not base64url'],
    ['a header that is not JSON', `AAAA.${payload}.${signature}`, 'the header is not a strict JSON object'],
    ['an array', `${header}.${base64url('[]')}.${signature}`, 'the payload is not a strict JSON object'],
  ])('refuses %s and says to operators what is wrong', (_what, raw, privateDetail) => {
    expect(outcome(() => parseToken(raw))).toEqual(['malformed_token', privateDetail]);
  });

  it('refuses a header each time that it comes', () => {
    const parse = () => outcome(() => parseToken(`e30x.${payload}.${signature}`));
    const refusal = ['malformed_token', 'the header is not a strict JSON object'];
    expect([parse(), parse()]).toEqual([refusal, refusal]);
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
  const untyped = { algorithms: new Set(ALGORITHMS), types: new Set([undefined, 'jwt']) };
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
    expect(check({ typ: undefined })).toEqual(['wrong_type', 'header has no typ, expected at+jwt']);
    expect(check({}, untyped)).toEqual(['wrong_type', 'header typ is "at+jwt", expected none or jwt']);
  });

  const HS256 = 'alg is "HS256", which needs a shared secret: have the issuer sign with a key pair';
  const NO_KID = 'kid is not a string of at most 1024 characters';
  const typIs = (typ: string): string => `header typ is "${typ}", expected at+jwt`;

  it.each<[string, object, string, string | undefined]>([
    ['no alg', { alg: undefined }, 'malformed_token', 'alg is not a string'],
    ['alg in an array', { alg: ['ES256'] }, 'malformed_token', 'alg is not a string'],
    ['none', { alg: 'none' }, 'algorithm_not_allowed', 'alg is "none"'],
    ['HS256', { alg: 'HS256' }, 'algorithm_not_allowed', HS256],
    ['another case', { alg: 'es256' }, 'algorithm_not_allowed', 'alg is "es256"'],
    ['crit', { crit: [] }, 'unsupported_critical_header', undefined],
    ['crit without a value', { crit: undefined }, 'unsupported_critical_header', undefined],
    ['b64', { b64: true }, 'unsupported_critical_header', undefined],
    ['typ that is not a string', { typ: 17 }, 'malformed_token', 'typ is not a string'],
    ['typ null', { typ: null }, 'malformed_token', 'typ is not a string'],
    ['another typ', { typ: 'jwt' }, 'wrong_type', typIs('jwt')],
    ['a media type of another tree', { typ: 'text/at+jwt' }, 'wrong_type', typIs('text/at+jwt')],
    ['application/ in the middle', { typ: 'at+application/jwt' }, 'wrong_type', typIs('at+application/jwt')],
    ['application/ after something', { typ: 'xapplication/at+jwt' }, 'wrong_type', typIs('xapplication/at+jwt')],
    ['a kid that is not a string', { kid: 17 }, 'malformed_token', NO_KID],
    ['kid null', { kid: null }, 'malformed_token', NO_KID],
    ['a kid too long', { kid: 'k'.repeat(1_025) }, 'malformed_token', NO_KID],
  ])('refuses %s', (_what, changes, reason, privateDetail) => {
    expect(check(changes)).toEqual([reason, privateDetail]);
  });

  it('refuses a known algorithm that is not accepted here', () => {
    const some = { ...accepted, algorithms: new Set(['RS256'] as const) };
    expect(check({}, some)).toEqual(['algorithm_not_allowed', 'alg is "ES256"']);
  });

  it('judges alg, then crit, then typ, then kid', () => {
    const wrong = { alg: 'none', crit: [], typ: 17, kid: 17 };
    expect(check(wrong)).toEqual(['algorithm_not_allowed', 'alg is "none"']);
    expect(check({ ...wrong, alg: 'ES256' })).toEqual(['unsupported_critical_header', undefined]);
    expect(check({ typ: 17, kid: 17 })).toEqual(['malformed_token', 'typ is not a string']);
  });
});

const REFUSED = ['malformed_token', 'the signature is not base64url'];

describe('base64url (RFC 7515 section 2)', () => {
  const [header = '', payload = '', signature = ''] = token().split('.');
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

  /** The bits of a text, made independently of Buffer; `undefined` where the text is not canonical. */
  function bitsOf(text: string): string | undefined {
    const places = [...text].map((character) => ALPHABET.indexOf(character));
    if (text === '' || places.includes(-1)) return undefined;
    const bits = places.map((place) => place.toString(2).padStart(6, '0')).join('');
    const left = bits.length % 8;
    // What is left over is less than a character, and zero.
    if (left >= 6 || bits.slice(bits.length - left).includes('1')) return undefined;
    return bits.slice(0, bits.length - left);
  }

  const odd = '=+/ \n\r\t~%é.';
  const alphabet = fc.constantFrom(...ALPHABET);
  const anySignature = fc.string({
    unit: fc.oneof({ weight: 60, arbitrary: alphabet }, { weight: 1, arbitrary: fc.constantFrom(...odd.slice(0, -1)) }),
    minLength: 1,
    maxLength: 140,
  });

  it('is accepted in its one canonical spelling, and read as its bits', () => {
    fc.assert(
      fc.property(anySignature, (text) => {
        const bits = bitsOf(text);
        const got = outcome(() => parseToken(`${header}.${payload}.${text}`).signature);
        const bytes = (bits?.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2));
        expect(got).toEqual(bits === undefined ? REFUSED : Buffer.from(bytes));
      }),
      { numRuns: 400 },
    );
  });

  it('has no other spelling in any part of a token', () => {
    fc.assert(
      fc.property(fc.nat(2), fc.nat(), fc.constantFrom(...odd), alphabet, (part, place, character, last) => {
        const parts = [header, payload, signature];
        const text = parts[part] as string;
        const at = place % (text.length + 1);
        const others = [
          `${text.slice(0, at)}${character}${text.slice(at)}`,
          `${text.slice(0, -1)}${last}`,
          `${text}${last}`,
        ];
        for (const other of others) {
          const raw = parts.map((each, number) => (number === part ? other : each)).join('.');
          const isCanonical = bitsOf(other) !== undefined;
          if (!isCanonical) expect(outcome(() => parseToken(raw))).toEqual(['malformed_token', expect.anything()]);
        }
      }),
      { numRuns: 200 },
    );
  });
});
