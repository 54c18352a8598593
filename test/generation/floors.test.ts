import { Floors } from '../../src/generation/floors';
import { HOUR, START } from './fixtures';

const floors = (): Floors => new Floors({ maxTokenAgeMs: 24 * HOUR, skewMs: 10_000 });

describe('Floors', () => {
  it('keeps the highest generation, in whatever order they come', () => {
    const kept = floors();
    for (const generation of [3, 1, 9, 9, 2, 0]) kept.apply('pos', generation);
    expect([kept.get('pos'), kept.get('kiosk'), kept.size]).toEqual([9, undefined, 1]);
  });

  it('keeps a floor for at least a lifetime, and for less than two, counters too', () => {
    const kept = floors();
    const { lifetimeMs } = kept;
    kept.turn(START);
    kept.apply('old', 41);
    kept.turn(START + lifetimeMs - 1);
    kept.apply('young', 41);
    kept.turn(START + lifetimeMs);
    expect([kept.get('old'), kept.get('young')]).toEqual([41, 41]);
    kept.turn(START + 2 * lifetimeMs - 1);
    expect([kept.get('old'), kept.get('young')]).toEqual([41, 41]);
    kept.turn(START + 2 * lifetimeMs);
    expect([kept.get('old'), kept.get('young'), kept.size]).toEqual([undefined, undefined, 0]);
  });

  it('needs a floor as long as the longest token, its tolerance, and the clocks of the issuer', () => {
    expect(floors().lifetimeMs).toBe(24 * HOUR + 10_000 + 60_000);
  });

  it('raises a floor that is in the older table', () => {
    const kept = floors();
    kept.turn(START);
    kept.apply('pos', 5);
    kept.turn(START + kept.lifetimeMs);
    kept.apply('pos', 4);
    expect(kept.get('pos')).toBe(5);
    kept.apply('pos', 6);
    expect(kept.get('pos')).toBe(6);
  });

  it.each([10, 100])('drops nothing that is new when the clock leaps %i lifetimes ahead and back', (lifetimes) => {
    const kept = floors();
    kept.turn(START);
    kept.apply('pos', START);
    kept.turn(START + lifetimes * kept.lifetimeMs);
    kept.turn(START + 1_000);
    kept.turn(START + 2_000);
    expect(kept.get('pos')).toBe(START);
  });

  it('applies a change of * to every client, for good', () => {
    const kept = floors();
    kept.apply('*', 7);
    kept.apply('*', 6);
    kept.apply('pos', 9);
    expect([kept.get('pos'), kept.get('kiosk'), kept.size]).toEqual([9, 7, 1]);
  });

  it('raises the floor of one client alone for a token, also of a client called *', () => {
    const kept = floors();
    kept.raise('*', 7);
    expect([kept.get('*'), kept.get('pos')]).toEqual([7, undefined]);
  });
});
