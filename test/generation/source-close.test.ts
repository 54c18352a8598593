import { settle } from '../support/fake-time';
import type { GenerationSnapshot } from '../../src/generation/source';
import { ScriptedSource, START, keptLog, startVerifier } from './fixtures';

/** A read that ends when the test says so. */
function held(source: ScriptedSource): { release(snapshot?: Partial<GenerationSnapshot>): void } {
  let resolve: (snapshot: GenerationSnapshot) => void = () => undefined;
  source.respond = () => new Promise((given) => (resolve = given));
  return { release: (snapshot) => resolve({ floors: [], nowMs: START, ...snapshot }) };
}

describe('close()', () => {
  it('stops watch and poll, and leaves a source that is shared open', async () => {
    const source = new ScriptedSource();
    const close = jest.fn(() => Promise.resolve());
    const { verifier, time } = startVerifier({ source: Object.assign(source, { close }) });
    await verifier.ready();
    await verifier.close();
    source.hint();
    await time.advance(60_000);
    expect(source.events).toEqual(['watch', 'read', 'stop']);
    expect(time.pending).toBe(0);
    expect(close).not.toHaveBeenCalled();
  });

  it('closes a source that was made for it', async () => {
    const close = jest.fn(() => Promise.resolve());
    await startVerifier({ source: Object.assign(new ScriptedSource(), { close }), ownsSource: true }).verifier.close();
    expect(close).toHaveBeenCalledTimes(1);
  });

  it('does not go on with a read that was under way', async () => {
    const source = new ScriptedSource();
    const read = held(source);
    const { verifier, time } = startVerifier({ source, logger: keptLog() });
    await settle();
    await verifier.close();
    read.release();
    await settle();
    expect(time.pending).toBe(0);
    await time.advance(60_000);
    expect(source.events).toEqual(['watch', 'read', 'stop']);
    expect(time.pending).toBe(0);
  });
});
