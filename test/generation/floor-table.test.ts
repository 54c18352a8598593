import fc from 'fast-check';
import { FloorTable, PARTS } from '../../src/generation/floor-table';

/** Ids of every width and length, among them many that differ in little. */
const clientId = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    'aa',
    'b',
    '\0',
    '\u00ff',
    '\u0100',
    'a\u0100',
    '\ud83d\ude00',
    '\ud83d',
    '\ude00',
    '__proto__',
  ),
  fc.string({ maxLength: 3 }),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.nat(300).map((n) => `client-${n}`),
);
const step = fc.oneof(
  { weight: 20, arbitrary: fc.tuple(clientId, fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }) },
);

describe('FloorTable', () => {
  it('keeps what a map keeps, for any ids and removals', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const table = new FloorTable();
        const map = new Map<string, number>();
        for (const each of steps) {
          if (typeof each === 'number') {
            for (let part = 0; part < PARTS; part++) table.drop(part, (floor) => floor < each);
            for (const [id, floor] of map) if (floor < each) map.delete(id);
          } else {
            const [id, floor] = each;
            const isHigher = floor > (map.get(id) ?? -1);
            expect(table.raise(id, floor)).toBe(isHigher);
            if (isHigher) map.set(id, floor);
          }
        }
        for (const [id, floor] of map) expect(table.get(id)).toBe(floor);
        expect(table.size).toBe(map.size);
        expect(table.get('unknown'.repeat(9))).toBeUndefined();
      }),
    );
  });

  it.each(['x', '\u4e00'])('keeps ids of %j of any length', (unit) => {
    const table = new FloorTable();
    const ids = [0x3fe, 0x3ff, 0x400, 0x8001].map((length) => unit.repeat(length));
    ids.forEach((id, n) => expect([table.raise(id, n), table.raise(id, n)]).toEqual([true, false]));
    expect(ids.map((id) => table.get(id))).toEqual([0, 1, 2, 3]);
    expect(table.size).toBe(4);
    for (let part = 0; part < PARTS; part++) table.drop(part, (floor) => floor < 3);
    expect(ids.map((id) => table.get(id))).toEqual([undefined, undefined, undefined, 3]);
  });

  it('grows, shrinks and grows again', () => {
    const table = new FloorTable();
    const all = Array.from({ length: 20_000 }, (_, n) => n);
    for (const n of all) table.raise(`client-${n}`, n);
    for (let part = 0; part < PARTS; part++) table.drop(part, (floor) => floor % 3 > 0);
    expect(table.size).toBe(6_667);
    expect(all.filter((n) => table.get(`client-${n}`) !== (n % 3 > 0 ? undefined : n))).toEqual([]);
    expect(all.filter((n) => table.raise(`client-${n}`, n) !== n % 3 > 0)).toEqual([]);
    expect(all.filter((n) => table.get(`client-${n}`) !== n)).toEqual([]);
    expect(Array.from({ length: PARTS }, (_, part) => table.sizeOf(part)).reduce((a, b) => a + b)).toBe(20_000);
  });

  it('spreads ids over its parts, whatever they have in common', () => {
    const prefix = new FloorTable();
    const suffix = new FloorTable();
    for (let n = 0; n < 25_600; n++) {
      prefix.raise(`https://partner.example/clients/${n}`, n);
      suffix.raise(`${n}@partner.example`, n);
    }
    for (const table of [prefix, suffix]) {
      const sizes = Array.from({ length: PARTS }, (_, part) => table.sizeOf(part));
      expect(Math.max(...sizes)).toBeLessThan(200);
      expect(Math.min(...sizes)).toBeGreaterThan(30);
    }
  });
});
