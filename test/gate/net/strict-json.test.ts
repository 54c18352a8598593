import fc from 'fast-check';
import { freezeJson, parseJsonObject } from '../../../src/gate/net/strict-json';
import { anyCharacter } from '../../support/any-character';

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

  it('returns objects that inherit nothing, and freezes them to their depth', () => {
    const value = parse('{"a":[{"b":{}}],"__proto__":{"c":1}}') as { readonly a: readonly [{ readonly b: object }] };
    const [{ b }] = value.a;
    for (const each of [value, value.a[0], b]) expect(Object.getPrototypeOf(each)).toBeNull();
    expect(freezeJson(value)).toBe(value);
    for (const each of [value, value.a, value.a[0], b]) expect(Object.isFrozen(each)).toBe(true);
    expect(Object.keys(value)).toEqual(['a', '__proto__']);
  });

  it('reads a text with an escaped name and a long run of one character in linear time', () => {
    const runs = '#$@~'.split('').map((character) => character.repeat(250_000));
    const text = JSON.stringify({ runs }).replace('"runs"', '"\\u0072uns"');
    expect(parse(text)).toEqual({ runs });
  });

  it('copes with 100,000 members and long runs of backslashes', () => {
    const members = Array.from({ length: 100_000 }, (_, index) => `"m${index}":${index}`);
    expect(Object.keys(parseJsonObject(Buffer.from(`{${members.join()}}`)))).toHaveLength(100_000);
    expect(parse(`{"a":"${'\\\\'.repeat(100_000)}"}`)).toEqual({ a: '\\'.repeat(100_000) });
  });
});
