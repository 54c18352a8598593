import { AuthError } from '../../src/core/auth-error';
import type { LiveSource } from '../../src/generation/source';
import { HOUR, reasonOf, ScriptedSource, START, startVerifier } from './fixtures';

/** A source in the same process that knows these floors. */
function liveSource(floors: Record<string, number>): LiveSource & { closed: number } {
  return {
    closed: 0,
    floorOf: (clientId) => floors[clientId],
    read: () => Promise.reject(new Error('a live source is not read')),
    close() {
      this.closed++;
      return Promise.resolve();
    },
  };
}

describe('generationVerifier with a source in the same process', () => {
  it('asks it with every token, and reads nothing', async () => {
    const floors: Record<string, number> = {};
    const { verifier, time } = startVerifier({ source: liveSource(floors) });
    await verifier.ready();
    expect(verifier.settled()).toBeUndefined();
    expect(verifier.status()).toEqual({ source: 'fresh', floors: 0, reads: 0, failures: 0 });
    expect(reasonOf(() => verifier.recheck('pos', START))).toBeUndefined();
    floors['pos'] = START + 1;
    await time.advance(24 * HOUR);
    expect(reasonOf(() => verifier.recheck('pos', START))).toBe('superseded');
    expect(reasonOf(() => verifier.recheck('pos', START + 1))).toBeUndefined();
  });

  it.each([
    ['what it learned', START - 2, START - 1],
    ['what it was told', START - 1, START - 2],
    ['both alike', START - 1, START - 1],
  ])('goes by the higher floor: %s', (_what, told, learned) => {
    const floors: Record<string, number> = {};
    const { verifier } = startVerifier({ source: liveSource(floors) });
    verifier.verify('pos', { generation: learned });
    floors['pos'] = told;
    expect(reasonOf(() => verifier.recheck('pos', START - 2))).toBe('superseded');
    expect(reasonOf(() => verifier.recheck('pos', START - 1))).toBeUndefined();
  });
});

describe('a verifier and its source', () => {
  it('closes the source that was made for it, and no other', async () => {
    const [own, shared] = [liveSource({}), liveSource({})];
    await startVerifier({ source: own, ownsSource: true }).verifier.close();
    await startVerifier({ source: shared }).verifier.close();
    expect([own.closed, shared.closed]).toEqual([1, 0]);
    await startVerifier({ source: new ScriptedSource(), ownsSource: true }).verifier.close();
    await startVerifier({ ownsSource: true }).verifier.close();
  });

  it('asks no more once it is closed', async () => {
    const source = new ScriptedSource();
    const { verifier, time } = startVerifier({ source });
    await verifier.ready();
    await verifier.close();
    await time.advance(HOUR);
    expect(source.asked).toEqual([0]);
  });

  it.each([
    [1, '1'],
    [1_000, '1'],
    [1_001, '2'],
    [30_000, '30'],
    [60_000, '30'],
  ])('with a poll every %i ms, says to come again in %s s', (pollMs, seconds) => {
    const { verifier } = startVerifier({ source: new ScriptedSource(), pollMs });
    expect(() => verifier.recheck('pos', START)).toThrow(
      expect.objectContaining({ headers: { 'Retry-After': seconds }, privateDetail: 'no recent complete read' }),
    );
  });

  it('tells operators why the last read failed, and counts', async () => {
    const source = new ScriptedSource();
    source.fails();
    const { verifier } = startVerifier({ source });
    await verifier.settled();
    expect(verifier.status()).toEqual({ source: 'starting', floors: 0, lastError: 'Error', reads: 0, failures: 1 });
    expect(verifier.status()).not.toHaveProperty('ageMs');
    expect(() => verifier.recheck('pos', START)).toThrow(expect.objectContaining({ privateDetail: 'Error' }));
  });

  it('warns under accept with the issuer, the reason and the age', async () => {
    const source = new ScriptedSource();
    const { verifier, log, time } = startVerifier({ source, onStale: 'accept' });
    await verifier.ready();
    source.fails();
    await time.advance(61_000);
    verifier.recheck('pos', START);
    verifier.recheck('pos', START);
    expect(log.lines.filter((line) => line.includes('out of date'))).toHaveLength(1);
    const at = log.lines.indexOf('warn: generations are out of date, requests are accepted');
    expect(log.fields[at]).toEqual({ issuer: 'https://login.example', detail: 'Error', ageMs: 61_000 });
  });

  it('raises no floor with a token that it refuses as superseded', () => {
    const { verifier } = startVerifier();
    verifier.verify('pos', { generation: START });
    const refused = new AuthError('superseded');
    expect(() => verifier.verify('pos', { generation: START - 1 })).toThrow(refused);
    expect(reasonOf(() => verifier.recheck('pos', START))).toBeUndefined();
  });

  it('learns from a token even while the floors are stale: it proves the change all the same', () => {
    const { verifier } = startVerifier({ source: new ScriptedSource() });
    expect(reasonOf(() => verifier.verify('pos', { generation: START }))).toBe('generations_unavailable');
    expect(reasonOf(() => verifier.recheck('pos', START - 1))).toBe('superseded');
  });
});
