import { AuthError } from '../../src/core/auth-error';
import { settle } from '../support/fake-time';
import { HOUR, ScriptedSource, START, reasonOf, track } from './fixtures';
import type { Tracked } from './fixtures';

const TOKEN = { generation: START - 2 * HOUR };

function attempt({ tracker }: Tracked): string | undefined {
  return reasonOf(() => tracker.admit('pos', TOKEN));
}

describe('freshness of a source', () => {
  it('refuses with 503 before the first complete read, and says when to come again', async () => {
    const source = new ScriptedSource();
    const tracked = track({ source });
    expect(tracked.tracker.settled()).toBeInstanceOf(Promise);
    expect(tracked.tracker.status()).toEqual({ source: 'starting', floors: 0, reads: 0, failures: 0 });
    expect(attempt(tracked)).toBe('generations_unavailable');
    await tracked.tracker.settled();
    expect(tracked.tracker.settled()).toBeUndefined();
    expect(attempt(tracked)).toBeUndefined();
    expect(tracked.tracker.status()).toEqual({ source: 'fresh', ageMs: 0, floors: 1, reads: 1, failures: 0 });
  });

  it('answers 503 with Retry-After and no challenge', () => {
    const { tracker } = track({ source: new ScriptedSource(), pollMs: 5_000 });
    const error: unknown = (() => {
      try {
        return tracker.admit('pos', TOKEN);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(AuthError);
    expect(error).toMatchObject({ status: 503, headers: { 'Retry-After': '5' } });
  });

  it('passes while the source is down inside the bound, refuses past it, and recovers by itself', async () => {
    const source = new ScriptedSource();
    const tracked = track({ source });
    await tracked.tracker.ready();
    source.fails();
    await tracked.time.advance(60_000);
    expect(attempt(tracked)).toBeUndefined();
    await tracked.time.advance(1);
    expect(attempt(tracked)).toBe('generations_unavailable');
    expect(tracked.tracker.status()).toMatchObject({ source: 'stale', ageMs: 60_001, lastError: 'Error' });
    source.holds();
    await tracked.time.advance(15_000);
    expect(attempt(tracked)).toBeUndefined();
    expect(tracked.tracker.status()).not.toHaveProperty('lastError');
    expect(tracked.log.lines).toEqual(['warn: generations cannot be read', 'info: generations can be read again']);
  });

  it('passes past the bound under accept, with one warning per outage, and floors still apply', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', START - 500]);
    const tracked = track({ source, onStale: 'accept' });
    await tracked.tracker.ready();
    source.fails();
    await tracked.time.advance(61_000);
    for (let n = 0; n < 3; n++) expect(tracked.tracker.admit('kiosk', TOKEN)).toBe(TOKEN.generation);
    expect(attempt(tracked)).toBe('superseded');
    expect(staleWarnings(tracked)).toBe(1);

    source.holds();
    await tracked.time.advance(20_000);
    tracked.tracker.admit('kiosk', TOKEN);
    source.fails();
    await tracked.time.advance(90_000);
    tracked.tracker.admit('kiosk', TOKEN);
    expect(staleWarnings(tracked)).toBe(2);
  });

  it('passes under accept when the source was never reached', async () => {
    const source = new ScriptedSource();
    source.fails();
    const tracked = track({ source, onStale: 'accept' });
    await tracked.tracker.settled();
    expect(attempt(tracked)).toBeUndefined();
    expect(tracked.tracker.status()).toMatchObject({ source: 'starting', reads: 0, failures: 1 });
  });

  it('calls a superseded token superseded, also while the source is down', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', START]);
    const tracked = track({ source });
    await tracked.tracker.ready();
    source.fails();
    await tracked.time.advance(120_000);
    expect(attempt(tracked)).toBe('superseded');
    expect(reasonOf(() => tracked.tracker.check('pos', TOKEN.generation))).toBe('superseded');
    expect(reasonOf(() => tracked.tracker.check('pos', START))).toBe('generations_unavailable');
  });

  it('settles after a failed first read, is not ready, and becomes ready later', async () => {
    const source = new ScriptedSource();
    source.fails();
    const { tracker, time } = track({ source });
    let isReady = false;
    void tracker.ready().then(() => (isReady = true));
    await tracker.settled();
    await time.advance(10_000);
    expect(isReady).toBe(false);
    source.holds();
    await time.advance(15_000);
    expect(isReady).toBe(true);
  });

  it('counts the age from the start of the read, not from its end', async () => {
    const source = new ScriptedSource();
    source.answer = () => new Promise((resolve) => time.schedule(() => resolve({ floors: [], nowMs: START }), 3_000));
    const { tracker, time } = track({ source });
    await time.advance(3_000);
    expect(tracker.status()).toMatchObject({ source: 'fresh', ageMs: 3_000 });
  });
});

describe('a clock that steps', () => {
  it('is stale after a step back, until the next read, which it asks for at once and whole', async () => {
    const source = new ScriptedSource();
    const tracked = track({ source });
    await tracked.tracker.ready();
    source.nowMs = START + 5_000;
    await tracked.time.advance(5_000);
    expect(source.asked).toEqual([0, START - 60_000]);

    tracked.time.step(-3_600_000);
    expect(attempt(tracked)).toBe('generations_unavailable');
    expect(tracked.tracker.status().source).toBe('stale');
    await settle();
    expect(source.asked).toEqual([0, START - 60_000, 0]);
    expect(tracked.tracker.status()).toMatchObject({ source: 'fresh', ageMs: 0 });
  });

  it('does not stay fresh after a step back while the source is down', async () => {
    const source = new ScriptedSource();
    const tracked = track({ source });
    await tracked.tracker.ready();
    source.fails();
    tracked.time.step(-3_600_000);
    for (let passed = 0; passed < 3_600_000; passed += 60_000) {
      expect(attempt(tracked)).toBe('generations_unavailable');
      await tracked.time.advance(60_000);
    }
  });

  it('is stale after a step forward, until the next read, which it asks for at once', async () => {
    const source = new ScriptedSource();
    const tracked = track({ source });
    await tracked.tracker.ready();
    tracked.time.step(3_600_000);
    expect(attempt(tracked)).toBe('generations_unavailable');
    await settle();
    expect(source.asked).toHaveLength(2);
    expect(attempt(tracked)).toBeUndefined();
  });

  it('gets back the floors that it dropped while the clock was ahead', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', START]);
    const tracked = track({ source });
    await tracked.tracker.ready();
    source.holds();
    tracked.time.step(48 * 3_600_000);
    await tracked.time.advance(65_000);
    expect(tracked.tracker.status().floors).toBe(0);

    tracked.time.step(-48 * 3_600_000);
    source.holds(['pos', START]);
    await tracked.time.advance(5_000);
    expect(source.asked.at(-1)).toBe(0);
    expect(attempt(tracked)).toBe('superseded');
  });

  it('drops no floor of the source because of a token that it learns from while the clock is ahead', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', START]);
    const tracked = track({ source, onStale: 'accept' });
    await tracked.tracker.ready();
    source.fails();
    tracked.time.step(48 * HOUR);
    tracked.tracker.admit('kiosk', { generation: START + 48 * HOUR });
    tracked.time.step(-48 * HOUR);
    expect(attempt(tracked)).toBe('superseded');
  });

  it('does not let requests during an outage cut the back-off short', async () => {
    const source = new ScriptedSource();
    const tracked = track({ source });
    await tracked.tracker.ready();
    source.fails();
    await tracked.time.advance(120_000);
    const asked = source.asked.length;
    for (let n = 0; n < 1_000; n++) attempt(tracked);
    await settle();
    expect(source.asked).toHaveLength(asked);
  });
});

function staleWarnings({ log }: Tracked): number {
  return log.lines.filter((line) => line === 'warn: generations are out of date, requests pass').length;
}
