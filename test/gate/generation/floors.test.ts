import { Floors } from '../../../src/gate/generation/floors';
import { HOUR, START, reasonOf } from './fixtures';
import { readGeneration } from '../../../src/gate/generation/generation';
import type { GenerationRule } from '../../../src/gate/generation/generation';
import { describeFailure } from '../../../src/gate/generation/log';
import { generationsFromUrl } from '../../../src/gate/generation/from-url';

const floors = (): Floors => new Floors({ maxTokenAgeMs: 24 * HOUR, skewMs: 10_000 });

/** Lets time pass for floors, half an hour at a time. */
function turning(kept: Floors): (untilMs: number) => void {
  let passedMs = 0;
  kept.turn(START);
  return (untilMs) => {
    while (passedMs < untilMs) kept.turn(START + (passedMs = Math.min(untilMs, passedMs + HOUR / 2)));
  };
}

describe('Floors', () => {
  it('keeps the highest generation, in whatever order they come', () => {
    const kept = floors();
    for (const generation of [3, 1, 9, 9, 2, 0]) kept.raise('pos', generation);
    expect([kept.get('pos'), kept.get('kiosk'), kept.size]).toEqual([9, undefined, 1]);
  });

  it('keeps a floor for at least a lifetime, and for less than two, counters too', () => {
    const kept = floors();
    const { lifetimeMs } = kept;
    const turnUntil = turning(kept);
    kept.raise('old', 41);
    turnUntil(lifetimeMs - 1);
    kept.raise('young', 41);
    turnUntil(lifetimeMs);
    expect([kept.get('old'), kept.get('young')]).toEqual([41, 41]);
    turnUntil(2 * lifetimeMs - 1);
    expect([kept.get('old'), kept.get('young')]).toEqual([41, 41]);
    turnUntil(2 * lifetimeMs);
    expect([kept.get('old'), kept.get('young'), kept.size]).toEqual([undefined, undefined, 0]);
  });

  it('needs a floor as long as the longest token, its tolerance, and the clocks of the issuer', () => {
    expect(floors().lifetimeMs).toBe(24 * HOUR + 10_000 + 60_000);
  });

  it('raises a floor that is in the older map', () => {
    const kept = floors();
    const turnUntil = turning(kept);
    kept.raise('pos', 5);
    turnUntil(kept.lifetimeMs);
    kept.raise('pos', 4);
    expect(kept.get('pos')).toBe(5);
    kept.raise('pos', 6);
    expect(kept.get('pos')).toBe(6);
  });

  it.each([10, 100])('drops nothing that is new when the clock leaps %i lifetimes ahead and back', (lifetimes) => {
    const kept = floors();
    const turnUntil = turning(kept);
    kept.raise('before a turn', START);
    turnUntil(kept.lifetimeMs);
    kept.raise('after it', START);
    for (const aheadMs of [lifetimes * kept.lifetimeMs, 1_000, lifetimes * kept.lifetimeMs, 2_000]) {
      kept.turn(START + kept.lifetimeMs + aheadMs);
      expect([kept.get('before a turn'), kept.get('after it')]).toEqual([START, START]);
    }
  });

  it('keeps the floors of 200,000 clients apart, whatever their ids are', () => {
    const kept = floors();
    const many = Array.from({ length: 200_000 }, (_, n) => `client-${n}`);
    const ids = ['', '__proto__', 'constructor', '\ud83d', '\u0100', ...many];
    ids.forEach((id, n) => kept.raise(id, n));
    expect(ids.filter((id, n) => kept.get(id) !== n)).toEqual([]);
    expect([kept.size, kept.get('unknown')]).toEqual([ids.length, undefined]);
  });

  it('raises the floor of one client alone, also of one called *', () => {
    const kept = floors();
    kept.raise('*', 7);
    expect([kept.get('*'), kept.get('pos')]).toEqual([7, undefined]);
  });
});

const RULE: GenerationRule = { claim: 'generation', decimalString: false, toleranceMs: 10_000 };
const TEXT_RULE: GenerationRule = { ...RULE, decimalString: true };
const IAT_RULE: GenerationRule = { ...RULE, claim: 'iat' };

type Row = [value: unknown, expected: number | 'generation_missing' | 'generation_invalid'];

function outcome(value: unknown, rule: GenerationRule): unknown {
  const claims = { [rule.claim]: value };
  return reasonOf(() => readGeneration(claims, rule, START)) ?? readGeneration(claims, rule, START);
}

describe('readGeneration', () => {
  const invalid = (...values: readonly unknown[]): Row[] => values.map((value) => [value, 'generation_invalid']);

  it.each<Row>([
    [undefined, 'generation_missing'],
    [null, 'generation_missing'],
    ...invalid('', '5', ' 5', '05', 5.5, JSON.parse('1e400'), NaN, -1, 2 ** 53, START + 10_001, 2 ** 53 - 1),
    ...invalid({}, { valueOf: () => 5 }, [], [5], true),
    [0, 0],
    [5, 5],
    [1e12 - 1, 1e12 - 1],
    [START, START],
    [START + 10_000, START + 10_000],
  ])('reads the claim %p as %p', (value, expected) => {
    expect(outcome(value, RULE)).toBe(expected);
  });

  it.each<Row>([
    ['0', 0],
    ['5', 5],
    ['1790000000123', 1_790_000_000_123],
    [5, 5],
    ...invalid('', ' 5', '5 ', '5\n', '05', '+5', '-1', '5.0', '1e3', '0x10', '٥', '9007199254740992'),
    ...invalid('9'.repeat(5_000), `${START + 10_001}`, ['5'], { toString: () => '5' }),
    [null, 'generation_missing'],
  ])('reads the claim %p as %p where decimal strings are allowed', (value, expected) => {
    expect(outcome(value, TEXT_RULE)).toBe(expected);
  });

  it.each<Row>([
    [1_700_000_000, 1_700_000_000_000],
    [1_700_000_000.999, 1_700_000_000_000],
    [0, 0],
    [START / 1000 + 10, START + 10_000],
    ...invalid(-1, JSON.parse('1e400'), '1700000000', START / 1000 + 11),
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
    ['5', 'claim "generation" is "5", a text of digits: have the authorization server stamp it as a number'],
    [START + 10_001, `generation ${START + 10_001} is 10001 ms ahead of this clock`],
  ])('tells operators what is wrong with %p', (generation, privateDetail) => {
    expect(() => readGeneration({ generation }, RULE, START)).toThrow(expect.objectContaining({ privateDetail }));
  });

  it('never reads an inherited claim', () => {
    const inherited = Object.create({ generation: 5 }) as Record<string, unknown>;
    expect(reasonOf(() => readGeneration(inherited, RULE, START))).toBe('generation_missing');
    for (const claim of ['constructor', '__proto__']) {
      expect(reasonOf(() => readGeneration({}, { ...RULE, claim }, START))).toBe('generation_missing');
    }
  });
});

describe('describeFailure()', () => {
  const [long, longer] = ['y'.repeat(60), 'x'.repeat(61)];
  it.each<[string, unknown, string]>([
    ['name and code', Object.assign(new TypeError('secret'), { code: 'E_1' }), 'TypeError (E_1)'],
    ['the code of its cause', new TypeError('secret', { cause: { code: 'E_1' } }), 'TypeError (E_1)'],
    ['no text as a name', { name: 'my secret', code: 'a b' }, 'a thrown object'],
    ['no text that only begins like a word', { name: 'a\n', code: '-a' }, 'a thrown object'],
    ['no name that is not a text', { name: 17, code: 17 }, 'a thrown object'],
    ['no name of more than 60 characters', { name: longer, code: long }, `a thrown object (${long})`],
    ['null', null, 'a thrown object'],
    ['a cause that is null', new TypeError('secret', { cause: null }), 'TypeError'],
  ])('names %s', (_what, error, expected) => {
    expect(describeFailure(error)).toBe(expected);
  });
});

describe('generationsFromUrl()', () => {
  it.each(['http://127.0.0.1:4000', 'https://login.example/generations', 'HTTPS://login.example'])(
    'makes a source of %s',
    async (url) => {
      const source = generationsFromUrl(url, { fetch: () => Promise.reject(new Error('down')), clock: Date.now });
      await expect(source.reader().next(0)).rejects.toThrow(/generations could not be fetched$/);
    },
  );

  it('refuses http: on another host', () => {
    expect(() => generationsFromUrl('http://pos:hunter2@login.example')).toThrow(/must be https:/);
    expect(generationsFromUrl('http://login.example', { allowHttp: true })).toHaveProperty('reader');
  });

  it.each([
    ['mysql://pos:hunter2@db', 'got "mysql:"'],
    ['login.example', 'got a URL without a scheme'],
    ['', 'got a URL without a scheme'],
    ['1mysql:x', 'got a URL without a scheme'],
    ['__proto__:x', 'got a URL without a scheme'],
    ['constructor:x', 'got "constructor:"'],
  ])('refuses %j and names what is accepted', (url, got) => {
    const expected = `generations: expected an http(s):, redis(s): or postgres: URL, ${got}`;
    expect(() => generationsFromUrl(url)).toThrow(new TypeError(expected));
  });
});
