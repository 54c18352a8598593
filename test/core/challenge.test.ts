import fc from 'fast-check';
import { quote, serializeChallenge } from '../../src/core/problem';
import { anyCharacter } from '../support/any-character';

/** Parses a challenge by RFC 9110 section 11.6.1, independently of src; throws at the first unexpected character. */
function parseChallenge(text: string): { scheme: string; parameters: [string, string][] } {
  const token = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y;
  let at = 0;
  const expectText = (expected: string): void => {
    if (!text.startsWith(expected, at)) throw new Error(`expected ${expected} at ${at} of ${text}`);
    at += expected.length;
  };
  const readToken = (): string => {
    token.lastIndex = at;
    const [found] = token.exec(text) ?? [];
    if (found === undefined) throw new Error(`expected a token at ${at} of ${text}`);
    at += found.length;
    return found;
  };
  const readQuoted = (): string => {
    let value = '';
    expectText('"');
    while (text[at] !== '"') {
      if (text[at] === '\\') at++;
      const char = text[at++];
      if (char === undefined || !/[\t\x20-\x7e]/.test(char)) throw new Error(`no qdtext at ${at} of ${text}`);
      value += char;
    }
    expectText('"');
    return value;
  };
  const scheme = readToken();
  const parameters: [string, string][] = [];
  while (at < text.length) {
    expectText(parameters.length === 0 ? ' ' : ', ');
    const name = readToken();
    expectText('=');
    parameters.push([name, readQuoted()]);
  }
  return { scheme, parameters };
}

const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom('"', '\\', '\r', '\n', '\0', '\x7f', 'ö', '🔑', ','),
    fc.string({ minLength: 1, maxLength: 1 }),
    anyCharacter,
  ),
});

describe('serializeChallenge', () => {
  it('round-trips any printable ASCII text through an independent parser', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme-ascii' }), { maxLength: 4 }), (values) => {
        const parameters = values.map((value, index) => [`p${index}`, value] as [string, string]);
        expect(parseChallenge(serializeChallenge('Bearer', parameters))).toEqual({ scheme: 'Bearer', parameters });
      }),
    );
  });

  it('writes any text as a well-formed header of printable ASCII', () => {
    fc.assert(
      fc.property(anyText, (value) => {
        const challenge = serializeChallenge('Bearer', [
          ['error_description', value],
          ['scope', 'x'],
        ]);
        expect(challenge).toMatch(/^[\x20-\x7e]*$/);
        const replaced = value.replace(/[^\x20-\x7e]/gu, '?');
        expect(parseChallenge(challenge).parameters).toEqual([
          ['error_description', replaced],
          ['scope', 'x'],
        ]);
      }),
    );
  });

  it('keeps the order and omits parameters without a value', () => {
    expect(
      serializeChallenge('Bearer', [
        ['realm', 'a'],
        ['error', undefined],
        ['scope', 'b c'],
      ]),
    ).toBe('Bearer realm="a", scope="b c"');
    expect(serializeChallenge('Basic', [])).toBe('Basic');
    expect(serializeChallenge('Basic', [['realm', '']])).toBe('Basic realm=""');
  });

  it.each([
    ['a quote', 'say "no"', '"say \\"no\\""'],
    ['a backslash', 'a\\b', '"a\\\\b"'],
    ['CR LF', 'a\r\nSet-Cookie: x', '"a??Set-Cookie: x"'],
    ['NUL and DEL', '\0\x7f', '"??"'],
    ['a letter beyond ASCII', 'größer', '"gr??er"'],
    ['an emoji, once', '🔑', '"?"'],
    ['a lone surrogate', '\ud800', '"?"'],
  ])('writes %s as a quoted-string (RFC 9110 section 5.6.4)', (_what, text, quoted) => {
    expect(quote(text)).toBe(quoted);
  });
});
