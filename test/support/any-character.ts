import fc from 'fast-check';

const SURROGATES = [0xd800, 0xe000] as const;
const COUNT = SURROGATES[1] - SURROGATES[0];

/**
 * Any character of Unicode, as a unit of strings. fast-check's own unit `binary` builds a table of a million entries
 * first, which takes a second.
 */
export const anyCharacter: fc.Arbitrary<string> = fc.nat(0x10_ffff - COUNT).map(
  (index) => String.fromCodePoint(index < SURROGATES[0] ? index : index + COUNT),
  (text) => {
    const point = typeof text === 'string' ? text.codePointAt(0) : undefined;
    if (point === undefined || String.fromCodePoint(point) !== text) throw new Error('not one character');
    if (point >= SURROGATES[0] && point < SURROGATES[1]) throw new Error('not a character');
    return point < SURROGATES[0] ? point : point - COUNT;
  },
);
