import { START, HOUR, reasonOf, startVerifier } from './fixtures';

describe('GenerationVerifier without a source', () => {
  it('is ready immediately, always fresh, and has nothing to settle', async () => {
    const { verifier } = startVerifier();
    await verifier.ready();
    expect(verifier.settled()).toBeUndefined();
    expect(verifier.status()).toEqual({ source: 'none', floors: 0, reads: 0, failures: 0 });
    await verifier.close();
  });

  it('admits any generation of a client that has no floor, and returns it', () => {
    expect(startVerifier().verifier.verify('pos', { generation: START - HOUR })).toBe(START - HOUR);
  });

  it.each([
    ['equal to', START, undefined],
    ['above', START + 1, undefined],
    ['below', START - 1, 'superseded'],
  ])('decides about a generation that is %s the floor', (_, generation, expected) => {
    const { verifier } = startVerifier();
    verifier.verify('pos', { generation: START });
    expect(reasonOf(() => verifier.recheck('pos', generation))).toBe(expected);
    expect(reasonOf(() => verifier.verify('pos', { generation }))).toBe(expected);
  });

  it('learns from an admitted token, so that the one before it dies', () => {
    const { verifier } = startVerifier();
    verifier.verify('pos', { generation: START - 2 });
    verifier.verify('pos', { generation: START - 1 });
    expect(reasonOf(() => verifier.verify('pos', { generation: START - 2 }))).toBe('superseded');
    expect(verifier.status().floors).toBe(1);
  });

  it('keeps the floors of different clients apart', () => {
    const { verifier } = startVerifier();
    verifier.verify('pos', { generation: START });
    expect(verifier.verify('kiosk', { generation: 3 })).toBe(3);
  });

  it('learns nothing from a token that it refuses', () => {
    const { verifier } = startVerifier();
    expect(reasonOf(() => verifier.verify('pos', { generation: START + HOUR }))).toBe('generation_invalid');
    expect(reasonOf(() => verifier.verify('pos', {}))).toBe('generation_missing');
    expect(verifier.status().floors).toBe(0);
  });

  it('learns nothing from issue times', () => {
    const rule = { claim: 'iat', decimalString: false, toleranceMs: 10_000 };
    const { verifier } = startVerifier({ rule, learn: false });
    expect(verifier.verify('pos', { iat: START / 1000 })).toBe(START);
    expect(verifier.verify('pos', { iat: START / 1000 - 60 })).toBe(START - 60_000);
    expect(verifier.status().floors).toBe(0);
  });

  it('forgets learned floors once their tokens have expired, so that memory grows with recent changes only', async () => {
    const { verifier, time } = startVerifier();
    for (let n = 0; n < 100; n++) verifier.verify(`client-${n}`, { generation: START });
    // Two tables take turns: after one lifetime they are in the older one, after two they are gone.
    for (const hours of [25, 50]) {
      await time.advance(25 * HOUR);
      verifier.verify('pos', { generation: START + hours * HOUR });
    }
    expect(verifier.status().floors).toBe(1);
  });

  it('says only in the private detail which generation is below which floor', () => {
    const { verifier } = startVerifier();
    verifier.verify('pos', { generation: START });
    expect(() => verifier.recheck('pos', 4)).toThrow(
      expect.objectContaining({ privateDetail: `generation 4 is below the floor ${START}`, status: 401 }),
    );
  });
});
