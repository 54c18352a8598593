import type { LiveSource } from '../../src/generation/source';
import { memoryGenerations } from '../../src/generation/memory';
import { START, reasonOf, startVerifier } from './fixtures';

/** A source that can be asked about one client at any moment. */
function verifierOfLive(floors: ReadonlyMap<string, number>): ReturnType<typeof startVerifier> {
  const source: LiveSource = { ...memoryGenerations(), floorOf: (clientId) => floors.get(clientId) };
  return startVerifier({ source });
}

describe('generationVerifier with a source that can be asked at any moment', () => {
  it('sees a change immediately, without a read', () => {
    const floors = new Map<string, number>();
    const { verifier } = verifierOfLive(floors);
    expect(verifier.verify('pos', { generation: START - 1 })).toBe(START - 1);
    floors.set('pos', START);
    expect(reasonOf(() => verifier.recheck('pos', START - 1))).toBe('superseded');
    expect(reasonOf(() => verifier.recheck('pos', START))).toBeUndefined();
  });

  it('is ready immediately and never stale, for any clock', async () => {
    const { verifier, time } = verifierOfLive(new Map());
    await verifier.ready();
    expect(verifier.settled()).toBeUndefined();
    await time.advance(3_600_000);
    expect(verifier.status()).toEqual({ source: 'fresh', floors: 0, reads: 0, failures: 0 });
    expect(reasonOf(() => verifier.recheck('pos', START))).toBeUndefined();
  });

  it('reads a source whose floorOf is not a function', async () => {
    const { verifier } = startVerifier({ source: { ...memoryGenerations(), floorOf: 'x' } as never });
    await verifier.ready();
    expect(verifier.status()).toMatchObject({ reads: 1 });
    expect(reasonOf(() => verifier.verify('pos', { generation: START }))).toBeUndefined();
    await verifier.close();
  });

  it.each([
    ['the learned floor where that is higher', START - 1],
    ['the floor of the source where that is higher', START + 2],
  ])('goes by %s', (_which, told) => {
    const { verifier } = verifierOfLive(new Map([['pos', told]]));
    const floor = Math.max(START, told);
    expect(reasonOf(() => verifier.verify('pos', { generation: START }))).toBe(told > START ? 'superseded' : undefined);
    expect(reasonOf(() => verifier.recheck('pos', floor - 1))).toBe('superseded');
    expect(reasonOf(() => verifier.recheck('pos', floor))).toBeUndefined();
  });
});
