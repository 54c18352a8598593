import type { LiveSource } from '../../src/generation/source';
import { memoryGenerations } from '../../src/generation/memory';
import { START, reasonOf, track } from './fixtures';

/** A source that answers about one client at any moment. */
function liveTracker(floors: ReadonlyMap<string, number>): ReturnType<typeof track> {
  const { read, watch } = memoryGenerations();
  const source: LiveSource = { read, watch, floorOf: (clientId) => floors.get(clientId) };
  return track({ source });
}

describe('trackGenerations with a source that can be asked at any moment', () => {
  it('sees a change at once, without reading', () => {
    const floors = new Map<string, number>();
    const { tracker } = liveTracker(floors);
    expect(tracker.admit('pos', { generation: START - 1 })).toBe(START - 1);
    floors.set('pos', START);
    expect(reasonOf(() => tracker.check('pos', START - 1))).toBe('superseded');
    expect(reasonOf(() => tracker.check('pos', START))).toBeUndefined();
  });

  it('is ready at once and never stale, whatever the clock does', async () => {
    const { tracker, time } = liveTracker(new Map());
    await tracker.ready();
    expect(tracker.settled()).toBeUndefined();
    await time.advance(3_600_000);
    expect(tracker.status()).toEqual({ source: 'fresh', floors: 0, reads: 0, failures: 0 });
    expect(reasonOf(() => tracker.check('pos', START))).toBeUndefined();
  });

  it.each([
    ['the learned floor where that is higher', START - 1],
    ['the floor of the source where that is higher', START + 2],
  ])('goes by %s', (_which, told) => {
    const { tracker } = liveTracker(new Map([['pos', told]]));
    const floor = Math.max(START, told);
    expect(reasonOf(() => tracker.admit('pos', { generation: START }))).toBe(told > START ? 'superseded' : undefined);
    expect(reasonOf(() => tracker.check('pos', floor - 1))).toBe('superseded');
    expect(reasonOf(() => tracker.check('pos', floor))).toBeUndefined();
  });
});
