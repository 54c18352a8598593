import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { anyCharacter } from '../../support/any-character';

/** Changes a text a little; positions are taken modulo its length. */
type Mutation = (text: string) => string;

const position = fc.nat(1_000_000);
const at = (text: string, where: number): number => (text === '' ? 0 : where % text.length);

const flipBit = fc.tuple(position, fc.nat(7)).map(([where, bit]): Mutation => (text) => {
  if (text === '') return text;
  const index = at(text, where);
  return text.slice(0, index) + String.fromCharCode(text.charCodeAt(index) ^ (1 << bit)) + text.slice(index + 1);
});

const cut = fc.tuple(position, fc.integer({ min: 1, max: 40 })).map(([where, length]): Mutation => (text) => {
  const index = at(text, where);
  return text.slice(0, index) + text.slice(index + length);
});

const repeat = fc.tuple(position, fc.integer({ min: 1, max: 40 })).map(([where, length]): Mutation => (text) => {
  const index = at(text, where);
  return text.slice(0, index + length) + text.slice(index);
});

const swap = fc
  .tuple(position, position, fc.integer({ min: 1, max: 20 }))
  .map(([one, two, length]): Mutation => (text) => {
    const [from, to] = [at(text, one), at(text, two)].sort((a, b) => a - b) as [number, number];
    if (to < from + length) return text;
    const [first, second] = [text.slice(from, from + length), text.slice(to, to + length)];
    return text.slice(0, from) + second + text.slice(from + length, to) + first + text.slice(to + length);
  });

const insert = (pieces: readonly string[]): Arbitrary<Mutation> =>
  fc.tuple(position, fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 8 }))).map(
    ([where, piece]): Mutation =>
      (text) =>
        text.slice(0, at(text, where)) + piece + text.slice(at(text, where)),
  );

const spliceWith = (others: readonly string[]): Arbitrary<Mutation> =>
  fc.tuple(position, position, fc.constantFrom(...others)).map(
    ([where, from, other]): Mutation =>
      (text) =>
        text.slice(0, at(text, where)) + other.slice(at(other, from)),
  );

const truncate = position.map(
  (where): Mutation =>
    (text) =>
      text.slice(0, at(text, where)),
);

/** A text after one to four small changes; `pieces` are put in, `others` are spliced with. */
export function mutated(
  text: string,
  pieces: readonly string[],
  others: readonly string[] = [text],
): Arbitrary<string> {
  const one = fc.oneof(flipBit, cut, repeat, swap, insert(pieces), spliceWith(others), truncate);
  return fc
    .array(one, { minLength: 1, maxLength: 4 })
    .map((changes) => changes.reduce((changed, change) => change(changed), text));
}

/** A value of a wrong type or content. */
export const oddValue: Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(
    ...[undefined, null, true, 0, -0, -1, 1.5, 1e308, 2 ** 53, 2 ** 31, '', ' ', [], {}, [[]], '__proto__'],
  ),
  fc.double(),
  fc.integer(),
  fc.string({ unit: anyCharacter, maxLength: 20 }),
);

/** An object with one to three of its members, or new ones, replaced. */
export function withOddMembers(
  good: Readonly<Record<string, unknown>>,
  names: readonly string[],
  values: Arbitrary<unknown> = oddValue,
): Arbitrary<Record<string, unknown>> {
  const name = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...names) },
    { weight: 1, arbitrary: fc.string({ maxLength: 8 }) },
  );
  return fc
    .array(fc.tuple(name, values), { minLength: 1, maxLength: 3 })
    .map((members) => ({ ...good, ...Object.fromEntries(members) }));
}
