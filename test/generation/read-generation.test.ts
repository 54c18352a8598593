import { readGeneration } from '../../src/generation/generation';
import type { GenerationRule } from '../../src/generation/generation';
import { START, reasonOf } from './fixtures';

const RULE: GenerationRule = { claim: 'generation', decimalString: false, toleranceMs: 10_000 };
const TEXT_RULE: GenerationRule = { ...RULE, decimalString: true };
const IAT_RULE: GenerationRule = { ...RULE, claim: 'iat' };

type Row = [value: unknown, expected: number | 'generation_missing' | 'generation_invalid'];

function outcome(value: unknown, rule: GenerationRule): unknown {
  const claims = { [rule.claim]: value };
  return reasonOf(() => readGeneration(claims, rule, START)) ?? readGeneration(claims, rule, START);
}

describe('readGeneration', () => {
  it.each<Row>([
    [undefined, 'generation_missing'],
    [null, 'generation_missing'],
    ['', 'generation_invalid'],
    ['5', 'generation_invalid'],
    [' 5', 'generation_invalid'],
    ['05', 'generation_invalid'],
    [5.5, 'generation_invalid'],
    [JSON.parse('1e400'), 'generation_invalid'],
    [NaN, 'generation_invalid'],
    [-1, 'generation_invalid'],
    [2 ** 53, 'generation_invalid'],
    [{}, 'generation_invalid'],
    [{ valueOf: () => 5 }, 'generation_invalid'],
    [[], 'generation_invalid'],
    [[5], 'generation_invalid'],
    [true, 'generation_invalid'],
    [0, 0],
    [5, 5],
    [1e12 - 1, 1e12 - 1],
    [START, START],
    [START + 10_000, START + 10_000],
    [START + 10_001, 'generation_invalid'],
    [2 ** 53 - 1, 'generation_invalid'],
  ])('reads the claim %p as %p', (value, expected) => {
    expect(outcome(value, RULE)).toBe(expected);
  });

  it.each<Row>([
    ['0', 0],
    ['5', 5],
    ['1790000000123', 1_790_000_000_123],
    [5, 5],
    ['', 'generation_invalid'],
    [' 5', 'generation_invalid'],
    ['5 ', 'generation_invalid'],
    ['5\n', 'generation_invalid'],
    ['05', 'generation_invalid'],
    ['+5', 'generation_invalid'],
    ['-1', 'generation_invalid'],
    ['5.0', 'generation_invalid'],
    ['1e3', 'generation_invalid'],
    ['0x10', 'generation_invalid'],
    ['٥', 'generation_invalid'],
    ['9007199254740992', 'generation_invalid'],
    ['9'.repeat(5_000), 'generation_invalid'],
    [['5'], 'generation_invalid'],
    [{ toString: () => '5' }, 'generation_invalid'],
    [`${START + 10_001}`, 'generation_invalid'],
    [null, 'generation_missing'],
  ])('reads the claim %p as %p where decimal strings are allowed', (value, expected) => {
    expect(outcome(value, TEXT_RULE)).toBe(expected);
  });

  it.each<Row>([
    [1_700_000_000, 1_700_000_000_000],
    [1_700_000_000.999, 1_700_000_000_000],
    [0, 0],
    [-1, 'generation_invalid'],
    [JSON.parse('1e400'), 'generation_invalid'],
    ['1700000000', 'generation_invalid'],
    [START / 1000 + 10, START + 10_000],
    [START / 1000 + 11, 'generation_invalid'],
    [undefined, 'generation_missing'],
  ])('reads the issue time %p as %p ms, rounded down to the second', (value, expected) => {
    expect(outcome(value, IAT_RULE)).toBe(expected);
  });

  it('holds times against the clock, counters never: a clock may stand at its beginning', () => {
    expect(readGeneration({ generation: 1e12 - 1 }, RULE, 0)).toBe(1e12 - 1);
    expect(reasonOf(() => readGeneration({ generation: 1e12 }, RULE, 0))).toBe('generation_invalid');
  });

  it.each<[unknown, string]>([
    [undefined, 'claim "generation" is undefined'],
    [null, 'claim "generation" is null'],
    ['5', 'claim "generation" is "5"'],
    [START + 10_001, `generation ${START + 10_001} is 10001 ms ahead of this clock`],
  ])('tells operators what is wrong with %p', (generation, privateDetail) => {
    expect(() => readGeneration({ generation }, RULE, START)).toThrow(expect.objectContaining({ privateDetail }));
  });

  it('never reads an inherited claim', () => {
    const inherited = Object.create({ generation: 5 }) as Record<string, unknown>;
    expect(reasonOf(() => readGeneration(inherited, RULE, START))).toBe('generation_missing');
    const rule = { ...RULE, claim: 'constructor' };
    expect(reasonOf(() => readGeneration({}, rule, START))).toBe('generation_missing');
    expect(reasonOf(() => readGeneration({}, { ...RULE, claim: '__proto__' }, START))).toBe('generation_missing');
  });
});
