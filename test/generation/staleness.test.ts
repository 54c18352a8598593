import { AuthError } from '../../src/core/auth-error';
import { settle } from '../support/fake-time';
import { HOUR, ScriptedSource, START, reasonOf, startVerifier } from './fixtures';
import type { StartedVerifier } from './fixtures';

const TOKEN = { generation: START - 2 * HOUR };

function attempt({ verifier }: StartedVerifier): string | undefined {
  return reasonOf(() => verifier.verify('pos', TOKEN));
}

describe('freshness of a source', () => {
  it('refuses with 503 before the first complete read, and says when to come again', async () => {
    const source = new ScriptedSource();
    const started = startVerifier({ source });
    expect(started.verifier.settled()).toBeInstanceOf(Promise);
    expect(started.verifier.status()).toEqual({ source: 'starting', floors: 0, reads: 0, failures: 0 });
    expect(attempt(started)).toBe('generations_unavailable');
    await started.verifier.settled();
    expect(started.verifier.settled()).toBeUndefined();
    expect(attempt(started)).toBeUndefined();
    expect(started.verifier.status()).toEqual({ source: 'fresh', ageMs: 0, floors: 1, reads: 1, failures: 0 });
  });

  it('responds with 503, Retry-After and no challenge', () => {
    const { verifier } = startVerifier({ source: new ScriptedSource(), pollMs: 5_000 });
    const error: unknown = (() => {
      try {
        return verifier.verify('pos', TOKEN);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(AuthError);
    expect(error).toMatchObject({ status: 503, headers: { 'Retry-After': '5' } });
  });

  it('reads again without waiting for a poll when a read took longer than the bound, which counts from its start', async () => {
    const source = new ScriptedSource();
    let arrive = (): void => undefined;
    source.respond = () => new Promise((resolve) => (arrive = () => resolve({ floors: [], nowMs: START })));
    const started = startVerifier({ source, readTimeoutMs: 600_000, pollMs: 30_000 });
    await started.time.advance(70_000);
    source.holds();
    arrive();
    await settle();
    expect(started.verifier.status()).toMatchObject({ source: 'stale', ageMs: 70_000, reads: 1 });
    await started.time.advance(1_000);
    expect(started.verifier.status()).toMatchObject({ source: 'fresh', reads: 2 });
    await started.time.advance(10_000);
    expect(started.verifier.status()).toMatchObject({ reads: 2 });
  });

  it('passes while the source is down inside the bound, refuses past it, and recovers by itself', async () => {
    const source = new ScriptedSource();
    const started = startVerifier({ source });
    await started.verifier.ready();
    source.fails();
    await started.time.advance(60_000);
    expect(attempt(started)).toBeUndefined();
    await started.time.advance(1);
    expect(attempt(started)).toBe('generations_unavailable');
    expect(started.verifier.status()).toMatchObject({ source: 'stale', ageMs: 60_001, lastError: 'Error' });
    source.holds();
    await started.time.advance(15_000);
    expect(attempt(started)).toBeUndefined();
    expect(started.verifier.status()).not.toHaveProperty('lastError');
    expect(started.log.lines).toEqual(['warn: generations cannot be read', 'info: generations can be read again']);
  });

  it('passes past the bound under accept, with one warning per outage, and floors still apply', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', START - 500]);
    const started = startVerifier({ source, onStale: 'accept' });
    await started.verifier.ready();
    source.fails();
    await started.time.advance(61_000);
    for (let n = 0; n < 3; n++) expect(started.verifier.verify('kiosk', TOKEN)).toBe(TOKEN.generation);
    expect(attempt(started)).toBe('superseded');
    expect(staleWarnings(started)).toBe(1);

    source.holds();
    await started.time.advance(20_000);
    started.verifier.verify('kiosk', TOKEN);
    source.fails();
    await started.time.advance(90_000);
    started.verifier.verify('kiosk', TOKEN);
    expect(staleWarnings(started)).toBe(2);
  });

  it('passes under accept when the source was never reached', async () => {
    const source = new ScriptedSource();
    source.fails();
    const started = startVerifier({ source, onStale: 'accept' });
    await started.verifier.settled();
    expect(attempt(started)).toBeUndefined();
    expect(started.verifier.status()).toMatchObject({ source: 'starting', reads: 0, failures: 1 });
  });

  it('calls a superseded token superseded, also while the source is down', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', START]);
    const started = startVerifier({ source });
    await started.verifier.ready();
    source.fails();
    await started.time.advance(120_000);
    expect(attempt(started)).toBe('superseded');
    expect(reasonOf(() => started.verifier.recheck('pos', TOKEN.generation))).toBe('superseded');
    expect(reasonOf(() => started.verifier.recheck('pos', START))).toBe('generations_unavailable');
  });

  it('settles after a failed first read, is not ready, and becomes ready later', async () => {
    const source = new ScriptedSource();
    source.fails();
    const { verifier, time } = startVerifier({ source });
    let isReady = false;
    void verifier.ready().then(() => (isReady = true));
    await verifier.settled();
    await time.advance(10_000);
    expect(isReady).toBe(false);
    source.holds();
    await time.advance(15_000);
    expect(isReady).toBe(true);
  });

  it('counts the age from the start of the read, not from its end', async () => {
    const source = new ScriptedSource();
    source.respond = () => new Promise((resolve) => time.schedule(() => resolve({ floors: [], nowMs: START }), 3_000));
    const { verifier, time } = startVerifier({ source });
    await time.advance(3_000);
    expect(verifier.status()).toMatchObject({ source: 'fresh', ageMs: 3_000 });
  });
});

describe('a clock that steps', () => {
  it('is stale after a step back, until the next read, which starts immediately and is whole', async () => {
    const source = new ScriptedSource();
    const started = startVerifier({ source });
    await started.verifier.ready();
    source.nowMs = START + 5_000;
    await started.time.advance(5_000);
    expect(source.asked).toEqual([0, START - 60_000]);

    started.time.step(-3_600_000);
    expect(attempt(started)).toBe('generations_unavailable');
    expect(started.verifier.status().source).toBe('stale');
    await settle();
    expect(source.asked).toEqual([0, START - 60_000, 0]);
    expect(started.verifier.status()).toMatchObject({ source: 'fresh', ageMs: 0 });
  });

  it('does not stay fresh after a step back while the source is down', async () => {
    const source = new ScriptedSource();
    const started = startVerifier({ source });
    await started.verifier.ready();
    source.fails();
    started.time.step(-3_600_000);
    for (let passed = 0; passed < 3_600_000; passed += 60_000) {
      expect(attempt(started)).toBe('generations_unavailable');
      await started.time.advance(60_000);
    }
  });

  it('is stale after a step forward, until the next read, which starts immediately', async () => {
    const source = new ScriptedSource();
    const started = startVerifier({ source });
    await started.verifier.ready();
    started.time.step(3_600_000);
    expect(attempt(started)).toBe('generations_unavailable');
    await settle();
    expect(source.asked).toHaveLength(2);
    expect(attempt(started)).toBeUndefined();
  });

  it('gets back the floors that it dropped while the clock was ahead', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', START]);
    const started = startVerifier({ source });
    await started.verifier.ready();
    source.holds();
    started.time.step(48 * 3_600_000);
    await started.time.advance(65_000);
    expect(started.verifier.status().floors).toBe(0);

    started.time.step(-48 * 3_600_000);
    source.holds(['pos', START]);
    await started.time.advance(5_000);
    expect(source.asked.at(-1)).toBe(0);
    expect(attempt(started)).toBe('superseded');
  });

  it('drops no floor of the source because of a token that it learns from while the clock is ahead', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', START]);
    const started = startVerifier({ source, onStale: 'accept' });
    await started.verifier.ready();
    source.fails();
    started.time.step(48 * HOUR);
    started.verifier.verify('kiosk', { generation: START + 48 * HOUR });
    started.time.step(-48 * HOUR);
    expect(attempt(started)).toBe('superseded');
  });

  it('does not let requests during an outage cut the back-off short', async () => {
    const source = new ScriptedSource();
    const started = startVerifier({ source });
    await started.verifier.ready();
    source.fails();
    await started.time.advance(120_000);
    const asked = source.asked.length;
    for (let n = 0; n < 1_000; n++) attempt(started);
    await settle();
    expect(source.asked).toHaveLength(asked);
  });
});

function staleWarnings({ log }: StartedVerifier): number {
  return log.lines.filter((line) => line === 'warn: generations are out of date, requests are accepted').length;
}
