import fc from 'fast-check';
import { Floors } from '../../src/generation/floors';
import { HOUR, START } from './fixtures';

function newFloors(): Floors {
  return new Floors({ maxTokenAgeMs: HOUR, skewMs: 1_000 });
}

describe('Floors', () => {
  it('raises a floor and says whether it moved', () => {
    const floors = newFloors();
    expect(floors.raise('pos', 5)).toBe(true);
    expect(floors.raise('pos', 5)).toBe(false);
    expect(floors.raise('pos', 4)).toBe(false);
    expect(floors.raise('pos', 6)).toBe(true);
    expect(floors.get('pos')).toBe(6);
    expect(floors.size).toBe(1);
  });

  it('takes 0 as a floor', () => {
    const floors = newFloors();
    expect(floors.raise('pos', 0)).toBe(true);
    expect(floors.get('pos')).toBe(0);
  });

  it.each(['__proto__', 'constructor', '', 'hasOwnProperty'])('keeps %j as a client id like any other', (clientId) => {
    const floors = newFloors();
    expect(floors.get(clientId)).toBeUndefined();
    floors.raise(clientId, 7);
    expect(floors.get(clientId)).toBe(7);
    expect(({} as Record<string, unknown>)['7']).toBeUndefined();
  });

  it('comes to the same floors in whatever order and however often they are merged', () => {
    const floor = fc.tuple(fc.constantFrom('a', 'b', '__proto__'), fc.nat());
    fc.assert(
      fc.property(fc.array(floor), fc.array(floor), (some, more) => {
        const [one, other] = [newFloors(), newFloors()];
        for (const pair of [...some, ...more]) one.raise(...pair);
        for (const pair of [...more.toReversed(), ...some, ...some.toReversed(), ...more]) other.raise(...pair);
        for (const clientId of ['a', 'b', '__proto__']) expect(one.get(clientId)).toBe(other.get(clientId));
      }),
    );
  });

  it('drops a floor once the longest token that it concerns has expired, not a millisecond earlier', () => {
    const floors = newFloors();
    floors.raise('pos', START);
    // A minute for a token whose issuer's clock was ahead of the clock that the floor comes from.
    expect(floors.trim(START + HOUR + 1_000 + 60_000)).toBe(0);
    expect(floors.get('pos')).toBe(START);
    expect(floors.trim(START + HOUR + 1_001 + 60_000)).toBe(1);
    expect(floors.get('pos')).toBeUndefined();
  });

  it('drops the first generation that is a time as any other', () => {
    const floors = newFloors();
    floors.raise('pos', 1e12);
    expect(floors.trim(START)).toBe(1);
  });

  it('keeps counters however late it is', () => {
    const floors = newFloors();
    floors.raise('pos', 41);
    floors.raise('kiosk', 1e12 - 1);
    expect(floors.trim(Number.MAX_SAFE_INTEGER)).toBe(0);
    expect(floors.size).toBe(2);
  });

  it('trims once a minute at most', () => {
    const floors = newFloors();
    const late = START + 2 * HOUR;
    floors.trimWhenDue(late);
    floors.raise('pos', START);
    floors.trimWhenDue(late + 59_999);
    expect(floors.size).toBe(1);
    floors.trimWhenDue(late + 60_000);
    expect(floors.size).toBe(0);
  });

  it('goes on with a large trim at the next call', () => {
    const floors = newFloors();
    for (let n = 0; n < 150_000; n++) floors.raise(`client-${n}`, START);
    const late = START + 2 * HOUR;
    floors.trimWhenDue(late);
    expect(floors.size).toBeGreaterThan(40_000);
    expect(floors.size).toBeLessThan(50_001);
    floors.trimWhenDue(late);
    expect(floors.size).toBe(0);
  });
});
