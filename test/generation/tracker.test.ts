import { START, HOUR, reasonOf, track } from './fixtures';

describe('trackGenerations without a source', () => {
  it('is ready at once, always fresh, and has nothing to settle', async () => {
    const { tracker } = track();
    await tracker.ready();
    expect(tracker.settled()).toBeUndefined();
    expect(tracker.status()).toEqual({ source: 'none', floors: 0, reads: 0, failures: 0 });
    await tracker.close();
  });

  it('admits any generation of a client that has no floor, and answers it', () => {
    expect(track().tracker.admit('pos', { generation: START - HOUR })).toBe(START - HOUR);
  });

  it.each([
    ['equal to', START, undefined],
    ['above', START + 1, undefined],
    ['below', START - 1, 'superseded'],
  ])('decides about a generation that is %s the floor', (_, generation, expected) => {
    const { tracker } = track();
    tracker.admit('pos', { generation: START });
    expect(reasonOf(() => tracker.check('pos', generation))).toBe(expected);
    expect(reasonOf(() => tracker.admit('pos', { generation }))).toBe(expected);
  });

  it('learns from an admitted token, so that the one before it dies', () => {
    const { tracker } = track();
    tracker.admit('pos', { generation: START - 2 });
    tracker.admit('pos', { generation: START - 1 });
    expect(reasonOf(() => tracker.admit('pos', { generation: START - 2 }))).toBe('superseded');
    expect(tracker.status().floors).toBe(1);
  });

  it('keeps the floors of different clients apart', () => {
    const { tracker } = track();
    tracker.admit('pos', { generation: START });
    expect(tracker.admit('kiosk', { generation: 3 })).toBe(3);
  });

  it('learns nothing from a token that it refuses', () => {
    const { tracker } = track();
    expect(reasonOf(() => tracker.admit('pos', { generation: START + HOUR }))).toBe('generation_invalid');
    expect(reasonOf(() => tracker.admit('pos', {}))).toBe('generation_missing');
    expect(tracker.status().floors).toBe(0);
  });

  it('learns nothing from issue times', () => {
    const rule = { claim: 'iat', decimalString: false, toleranceMs: 10_000 };
    const { tracker } = track({ rule, learn: false });
    expect(tracker.admit('pos', { iat: START / 1000 })).toBe(START);
    expect(tracker.admit('pos', { iat: START / 1000 - 60 })).toBe(START - 60_000);
    expect(tracker.status().floors).toBe(0);
  });

  it('forgets learned floors once their tokens have expired, so that memory grows with recent changes only', async () => {
    const { tracker, time } = track();
    for (let n = 0; n < 100; n++) tracker.admit(`client-${n}`, { generation: START });
    await time.advance(25 * HOUR);
    tracker.admit('pos', { generation: START + 25 * HOUR });
    expect(tracker.status().floors).toBe(1);
  });

  it('says in the private detail alone what is behind what', () => {
    const { tracker } = track();
    tracker.admit('pos', { generation: START });
    expect(() => tracker.check('pos', 4)).toThrow(
      expect.objectContaining({ privateDetail: `generation 4 is below the floor ${START}`, status: 401 }),
    );
  });
});
