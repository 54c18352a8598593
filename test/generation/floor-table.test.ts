import fc from 'fast-check';
import { FloorTable } from '../../src/generation/floor-table';

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
const step = fc.tuple(clientId, fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }));

describe('FloorTable', () => {
  it('keeps what a map keeps, for any ids', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const table = new FloorTable();
        const map = new Map<string, number>();
        for (const [id, floor] of steps) {
          const isHigher = floor > (map.get(id) ?? -1);
          expect(table.raise(id, floor)).toBe(isHigher);
          if (isHigher) map.set(id, floor);
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
  });
});
