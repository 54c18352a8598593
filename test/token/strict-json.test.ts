import fc from 'fast-check';
import { parseJsonObject } from '../../src/token/strict-json';
import { anyCharacter } from '../support/any-character';
import type { AuthError } from '../../src/core/errors';
import { staticKeys } from '../../src/token/keys/key-set';
import { securityEventVerifier } from '../../src/token/security-event';
import { NOW, NOW_MS, token } from '../support/issuer';
import type { Members } from '../support/issuer';
import { jwks, newKey, testKey } from '../support/keys';

const parse = (text: string): unknown => parseJsonObject(Buffer.from(text));

/** Writes a value as JSON with one member of one object twice. */
function withDuplicate(value: unknown, pick: number, blank: '' | ' '): string | undefined {
  const objects: object[] = [];
  JSON.stringify(value, (_key, member: unknown) => {
    if (typeof member === 'object' && member !== null && !Array.isArray(member) && Object.keys(member).length > 0)
      objects.push(member);
    return member;
  });
  const chosen = objects[pick % Math.max(1, objects.length)];
  if (!chosen) return undefined;
  const write = (node: unknown): string => {
    if (Array.isArray(node)) return `[${node.map(write).join(',')}]`;
    if (typeof node !== 'object' || node === null) return JSON.stringify(node);
    const members = Object.entries(node).map(
      ([name, member]) => `${JSON.stringify(name)}${blank}:${blank}${write(member)}`,
    );
    if (node === chosen) members.push(`${JSON.stringify(Object.keys(node)[0])}:null`);
    return `{${blank}${members.join(`${blank},${blank}`)}${blank}}`;
  };
  return write(value);
}

// Once around, because JSON.stringify writes -0 as 0.
const jsonObject = fc
  .dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue({ maxDepth: 4 }), { noNullPrototype: true })
  .map((value) => JSON.parse(JSON.stringify(value)) as object);

describe('parseJsonObject', () => {
  it('parses whatever JSON.stringify makes of an object, to the same', () => {
    fc.assert(
      fc.property(jsonObject, fc.nat(4), (value, indent) => {
        expect(parse(JSON.stringify(value, undefined, indent))).toEqual(value);
      }),
    );
  });

  it('refuses a member that occurs twice, in whichever object it stands', () => {
    let refused = 0;
    fc.assert(
      fc.property(jsonObject, fc.nat(), fc.constantFrom('', ' '), (value, pick, blank) => {
        const text = withDuplicate(value, pick, blank);
        if (text === undefined) return;
        refused++;
        expect(() => JSON.parse(text) as unknown).not.toThrow();
        expect(() => parse(text)).toThrow(new SyntaxError('a member name occurs twice'));
      }),
    );
    expect(refused).toBeGreaterThan(50);
  });

  it.each([
    ['null', 'null'],
    ['an array', '[{"a":1}]'],
    ['a string', '"a"'],
    ['a number', '17'],
    ['true', 'true'],
  ])('refuses what is not an object: %s', (_what, text) => {
    expect(() => parse(text)).toThrow(new SyntaxError('expected a JSON object'));
  });

  it('refuses bytes that are no UTF-8, and a byte order mark', () => {
    expect(() => parseJsonObject(Buffer.from('{"a":"\xe9"}', 'latin1'))).toThrow(new SyntaxError('expected UTF-8'));
    expect(() => parse('\ufeff{}')).toThrow(SyntaxError);
  });

  it.each([
    ['escaped once', '{"a":1,"\\u0061":2}'],
    ['a quote in the name', '{"\\"":1,"\\u0022":2}'],
    ['after a string that looks like a member', '{"a":"\\"b\\":1","b":1,"b":2}'],
    ['after brackets in strings', '{"a":"}{[","a":1}'],
    ['with white space before the colon', '{"a"\n\t :1,"a" :2}'],
    ['__proto__', '{"__proto__":1,"__proto__":2}'],
    ['empty names', '{"":1,"":2}'],
  ])('refuses duplicates: %s', (_what, text) => {
    expect(() => parse(text)).toThrow(new SyntaxError('a member name occurs twice'));
  });

  it.each([
    ['the same name in two objects', '{"a":{"x":1},"b":{"x":1},"x":[{"x":1},{"x":1}]}'],
    ['a value that equals a name', '{"a":"a","b":"a"}'],
    ['a value before an object with that name', '{"a":["b",{"b":1}],"b":1}'],
    ['names that differ in case or normal form', '{"a":1,"A":2,"\u00e9":3,"e\u0301":4}'],
  ])('accepts %s', (_what, text) => {
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  // JSON.parse of Node 24 and 26 reads the second text as the first one (nodejs/node issue 63785).
  it.each([
    ['a letter', '{"a":1,"\\\\":2}', '{"a":1,"\\u0062":2}', { a: 1, b: 2 }],
    ['a slash, as PHP writes it', '{"iss":1,"x:\\\\/\\\\/y":2}', '{"iss":1,"x:\\/\\/yzw":2}', { iss: 1, 'x://yzw': 2 }],
    ['__proto__', '{"a":1,"\\\\u005f_":2}', '{"a":1,"\\u005f_proto__":2}', JSON.parse('{"a":1,"__proto__":2}')],
    [
      'in an object inside',
      '{"h":1,"\\\\":0}',
      '{"#":[{"h":1,"\\"":2}],"##0":"\\n"}',
      { '#': [{ h: 1, '"': 2 }], '##0': '\n' },
    ],
    [
      'names that look like stand-ins',
      '{"h":1}',
      '{"\\u00231":"A","\\u0062":"B","\\u00230":"C"}',
      { '#1': 'A', b: 'B', '#0': 'C' },
    ],
    ['a lone surrogate', '{"h":1,"\\\\":0}', '{"h":1,"\\ud800":2}', { h: 1, '\ud800': 2 }],
  ])('reads a name with an escape as it is, whatever was parsed before: %s', (_what, before, text, expected) => {
    const known: unknown = JSON.parse(before);
    expect(parse(text)).toEqual(expected);
    expect(known).toEqual(JSON.parse(before));
  });

  it('finds a name that occurs twice, once with an escape, whatever was parsed before', () => {
    const known: unknown = JSON.parse('{"a":1,"\\\\":2}');
    expect(() => parse('{"a":1,"\\u0061":2}')).toThrow(new SyntaxError('a member name occurs twice'));
    expect(() => parse('{"\\u0061":1,"\\u0061":2}')).toThrow(new SyntaxError('a member name occurs twice'));
    expect(known).toBeDefined();
  });

  it('returns objects that inherit nothing, frozen to their depth', () => {
    const value = parse('{"a":[{"b":{}}],"__proto__":{"c":1}}') as { readonly a: readonly [{ readonly b: object }] };
    const [{ b }] = value.a;
    for (const each of [value, value.a[0], b]) expect(Object.getPrototypeOf(each)).toBeNull();
    for (const each of [value, value.a, value.a[0], b]) expect(Object.isFrozen(each)).toBe(true);
    expect(Object.keys(value)).toEqual(['a', '__proto__']);
  });

  it('copes with 100,000 members and long runs of backslashes', () => {
    const members = Array.from({ length: 100_000 }, (_, index) => `"m${index}":${index}`);
    expect(Object.keys(parseJsonObject(Buffer.from(`{${members.join()}}`)))).toHaveLength(100_000);
    expect(parse(`{"a":"${'\\\\'.repeat(100_000)}"}`)).toEqual({ a: '\\'.repeat(100_000) });
  });
});

describe('security event tokens', () => {
  const TRANSMITTER = 'https://login.test';
  const RECEIVER = 'https://api.test/events';
  const EVENT = 'https://schemas.openid.net/secevent/caep/event-type/credential-change';

  const verify = securityEventVerifier({
    transmitter: TRANSMITTER,
    audiences: [RECEIVER, 'https://api.test/other'],
    algorithms: ['ES256'],
    keys: staticKeys(jwks(testKey())),
    clockToleranceMs: 10_000,
    clock: () => NOW_MS,
  });

  /** A good security event token with some claims replaced; `undefined` removes one. */
  function setWith(claims: Members = {}, header: Members = {}): string {
    const good = { iss: TRANSMITTER, aud: RECEIVER, jti: 'e-1', iat: NOW, events: { [EVENT]: { reason: 'lost' } } };
    return token({ header: { typ: 'secevent+jwt', ...header }, payload: JSON.stringify({ ...good, ...claims }) });
  }

  async function refusal(raw: string): Promise<unknown> {
    try {
      await verify(raw);
      return undefined;
    } catch (error) {
      const { reason, privateDetail } = error as AuthError;
      return privateDetail === undefined ? reason : `${reason}: ${privateDetail}`;
    }
  }

  it('returns what a security event token says, frozen to its depth', async () => {
    const subject = { format: 'iss_sub', iss: TRANSMITTER, sub: 'pos-17', more: { x: 1 } };
    const event = await verify(setWith({ sub_id: subject }));
    expect(event).toEqual({
      tokenId: 'e-1',
      issuedAtMs: NOW_MS,
      events: { [EVENT]: { reason: 'lost' } },
      subject,
    });
    expect([event.events, event.events[EVENT], event.subject].every(Object.isFrozen)).toBe(true);
    expect(Object.isFrozen((event.subject as { more: unknown }).more)).toBe(true);
  });

  it.each<[string, Members]>([
    ['the other audience', { aud: 'https://api.test/other' }],
    ['one audience of several', { aud: ['https://elsewhere.test', RECEIVER] }],
    ['an iat of zero', { iat: 0 }],
    ['an iat at the end of the tolerance', { iat: NOW + 10 }],
    ['an exp that the tolerance still allows', { exp: NOW - 9.999 }],
    ['an exp in the future', { exp: NOW + 60 }],
  ])('accepts %s', async (_what, claims) => {
    expect(await refusal(setWith(claims))).toBeUndefined();
  });

  it.each<[string, Members]>([
    ['wrong_issuer', { iss: 'https://login.test/' }],
    ['wrong_issuer', { iss: undefined }],
    ['wrong_audience', { aud: `${RECEIVER}/` }],
    ['wrong_audience', { aud: ['https://elsewhere.test'] }],
    ['wrong_audience', { aud: [] }],
    ['wrong_audience', { aud: undefined }],
    ['not_yet_valid', { iat: NOW + 10.001 }],
    ['expired', { exp: NOW - 10 }],
    ['expired', { exp: 0 }],
  ])('refuses as %s: %j', async (reason, claims) => {
    expect(await refusal(setWith(claims))).toBe(reason);
  });

  it.each<[string, Members]>([
    ['jti', { jti: undefined }],
    ['jti', { jti: 7 }],
    ['jti', { jti: '' }],
    ['iat', { iat: undefined }],
    ['iat', { iat: '1' }],
    ['iat', { iat: -1 }],
    ['exp', { exp: '1' }],
    ['exp', { exp: null }],
    ['events', { events: undefined }],
    ['events', { events: {} }],
    ['events', { events: null }],
    ['events', { events: [EVENT] }],
    ['events', { events: EVENT }],
  ])('tells operators that %s is wrong: %j', async (name, claims) => {
    expect(await refusal(setWith(claims))).toMatch(new RegExp(`^invalid_claims: ${name} is `));
  });

  it('refuses an iat that is too large for a number', async () => {
    const raw = JSON.stringify({ iss: TRANSMITTER, aud: RECEIVER, jti: 'e-1', events: { [EVENT]: {} } });
    const payload = raw.replace(/}$/, ',"iat":-1e400}');
    expect(await refusal(token({ header: { typ: 'secevent+jwt' }, payload }))).toMatch(/^invalid_claims: iat/);
    const later = raw.replace(/}$/, ',"iat":1e400}');
    expect(await refusal(token({ header: { typ: 'secevent+jwt' }, payload: later }))).toMatch(/^invalid_claims: iat/);
  });

  it.each(['at+jwt', 'JWT', '', undefined])('refuses typ %s', async (typ) => {
    expect(await refusal(setWith({}, { typ }))).toBe('wrong_type');
  });

  it('refuses another key with the same id, and another algorithm', async () => {
    const payload = JSON.stringify({ iss: TRANSMITTER, aud: RECEIVER, jti: 'e', iat: NOW, events: { [EVENT]: {} } });
    const header = { typ: 'secevent+jwt' };
    expect(await refusal(token({ key: newKey(), header, payload }))).toBe('bad_signature');
    expect(await refusal(token({ key: testKey('ES384'), header, payload }))).toMatch(/^algorithm_not_allowed/);
  });
});
