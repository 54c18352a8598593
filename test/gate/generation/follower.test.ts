import type { Batch, Change, GenerationSource, Mark } from '../../../src/gate/generation/log';
import { fakeTime, settle } from '../../support/fake-time';
import { HOUR, START, reasonOf, startFollower } from './fixtures';
import type { StartedFollower } from './fixtures';
import { Engine, Scene, markAt, memoryOn, publishing, readBy, running, verdict } from './scene';

describe('a process that runs', () => {
  it('learns of a change at once', async () => {
    const { scene, api } = await running();
    await scene.change('pos');
    expect(verdict(api, scene.record.get('pos')! - 1)).toBe('superseded');
  });

  it('warns after a minute of silence, and refuses after maxSilenceMs', async () => {
    const { scene, api } = await running();
    const generation = scene.record.get('pos')!;
    scene.link.cut = true;
    await scene.time.advance(58_000);
    expect(api.log.lines).toEqual([]);
    await scene.time.advance(8_000);
    expect(api.log.lines).toEqual(['warn: the publisher of generations is not heard from']);
    expect(api.follower.status().silentMs).toBeGreaterThan(60_000);
    await scene.time.advance(900_000 - 68_000);
    expect(verdict(api, generation)).toBe('accepted');
    await scene.time.advance(3_000);
    expect([verdict(api, generation), api.follower.status().source]).toEqual(['generations_unavailable', 'silent']);
    scene.link.cut = false;
    await scene.time.advance(2_000);
    expect(verdict(api, generation)).toBe('accepted');
    expect(api.log.lines.at(-1)).toBe('info: the publisher of generations is heard from again');
  });

  it('accepts with a warning past a limit where the mount says so', async () => {
    const scene = await publishing();
    const api = scene.process({ onStale: 'accept' });
    await scene.time.advance(1_500);
    scene.link.cut = true;
    await scene.time.advance(902_000);
    for (let times = 0; times < 2; times++) expect(verdict(api, START)).toBe('accepted');
    expect(api.log.lines.filter((line) => line.includes('out of date'))).toEqual([
      'warn: generations are out of date, requests are accepted',
    ]);
  });

  it('never accepts a token again for a change that was made during an outage', async () => {
    const { scene, api } = await running();
    const generation = scene.record.get('pos')!;
    const verdicts: string[] = [];
    // Publisher and process both lose the engine.
    scene.link.cut = api.link.cut = true;
    await scene.change('pos');
    for (let n = 0; n < 900; n++) {
      await scene.time.advance(100);
      verdicts.push(verdict(api, generation));
      if (n === 700) api.link.cut = false;
      if (n === 725) scene.link.cut = false;
    }
    const steps = verdicts.filter((one, index) => one !== verdicts[index - 1]);
    expect(steps).toEqual(['accepted', 'generations_unavailable', 'superseded']);
  });

  it('goes on after an outage of the log alone', async () => {
    const { scene, api } = await running();
    const generation = scene.record.get('pos')!;
    api.link.cut = true;
    await scene.time.advance(60_000);
    expect(api.follower.status().source).toBe('stale');
    expect(verdict(api, generation)).toBe('generations_unavailable');
    api.link.cut = false;
    await scene.time.advance(17_000);
    expect(verdict(api, generation)).toBe('accepted');
    expect(api.log.lines).toEqual(['warn: generations cannot be read', 'info: generations can be read again']);
  });

  it('waits for a mark too after a read that began before maxStalenessMs and ended after it', async () => {
    const time = fakeTime(START);
    let hangs = false;
    let hungMs = Infinity;
    let mark = markAt(START);
    let release = (): void => undefined;
    const source = readBy(time, async () => {
      if (hangs) {
        hungMs = time.clock();
        await new Promise<void>((resolve) => (release = resolve));
      } else {
        mark = markAt(time.clock());
      }
      return { mark };
    });
    const api = startFollower({ source, readTimeoutMs: 120_000 }, time);
    await time.advance(10_000);
    expect(verdict(api, START)).toBe('accepted');
    hangs = true;
    await time.advance(5_000);
    // The read before it began 5 s earlier, so the limit has passed 3 s ago.
    await time.advance(hungMs + 58_000 - time.clock());
    expect(verdict(api, START)).toBe('generations_unavailable');
    release();
    await time.advance(0);
    expect(verdict(api, START)).toBe('generations_unavailable');
  });

  it('keeps what it knows when the log goes back, and learns what is appended after that', async () => {
    const scene = await publishing();
    const before = scene.engine.state;
    await scene.change('pos');
    const api = scene.process();
    await scene.time.advance(1_500);
    scene.engine.state = before;
    await scene.change('kiosk');
    for (let n = 0; n < 20; n++) {
      await scene.time.advance(100);
      expect(verdict(api, START - 1)).toBe('superseded');
    }
    expect(reasonOf(() => api.follower.verify('kiosk', { generation: START }))).toBe('superseded');
  });

  it('refuses after maxSilenceMs what it reads from a demoted primary', async () => {
    const { scene, api } = await running();
    const generation = scene.record.get('pos')!;
    const demoted = scene.engine;
    const left = scene.process({}, () => demoted);
    await scene.time.advance(6_000);
    scene.engine = new Engine();
    scene.engine.state = demoted.state;
    await scene.change('pos');
    await scene.time.advance(6_000);
    expect([verdict(api, generation), verdict(left, generation)]).toEqual(['superseded', 'accepted']);
    await scene.time.advance(900_000);
    expect([verdict(left, generation), left.follower.status().source]).toEqual(['generations_unavailable', 'silent']);
    expect(api.follower.status().source).toBe('fresh');
  });

  it('counts the age of a mark that moves but lags', async () => {
    const time = fakeTime(START);
    let lagMs = 0;
    const source = readBy(time, () => ({ mark: markAt(time.clock() - lagMs) }));
    const api = startFollower({ source }, time);
    await time.advance(10_000);
    expect(verdict(api, START)).toBe('accepted');
    for (lagMs = 0; lagMs < 950_000; lagMs += 4_000) await time.advance(5_000);
    expect([verdict(api, START), api.follower.status().source]).toEqual(['generations_unavailable', 'silent']);
  });

  it('takes no floor of the future until its time has come, and says that it cannot tell about tokens below it', async () => {
    const scene = await publishing();
    const api = scene.process();
    await scene.time.advance(1_500);
    const now = scene.time.clock();
    await scene.link.source.append!([
      ['pos', now * 1000],
      ['pos', now + 30_000],
    ]);
    await scene.time.advance(100);
    expect(verdict(api, now)).toBe('generations_unavailable');
    expect(api.follower.recheck('kiosk', now)).toBeUndefined();
    expect(api.log.lines).toEqual([
      'error: the log has a generation of the future: it is read again when that time has come',
    ]);
    await scene.time.advance(21_000);
    expect(verdict(api, now)).toBe('superseded');
    expect(verdict(api, now + 30_000)).toBe('accepted');
    await scene.time.advance(120_000);
    expect(verdict(api, now + 30_000)).toBe('accepted');
  });

  it('skips an entry that is no change, and applies those after it', async () => {
    const scene = await publishing();
    const api = scene.process();
    await scene.time.advance(1_500);
    await scene.link.source.append!([
      ['pos', 1.5],
      [7 as never, 7],
      ['*', START],
      ['pos', START],
    ]);
    await scene.time.advance(100);
    expect(verdict(api, START - 1)).toBe('superseded');
    expect(api.follower.verify('kiosk', { generation: START - 1 })).toBe(START - 1);
    expect(api.log.lines).toEqual(Array(3).fill('error: an entry of the log is not a change, it is skipped'));
  });

  it.each([
    ['has stepped back, until the next read', -5_000, 6_000],
    ['has leapt, until it has read again and the mark has moved', 70_000, 7_000],
  ])('is stale after its clock %s', async (_what, stepMs, waitMs) => {
    const { scene, api } = await running();
    const generation = scene.record.get('pos')!;
    scene.time.step(stepMs);
    expect(verdict(api, generation)).toBe('generations_unavailable');
    await scene.time.advance(waitMs);
    expect(verdict(api, generation)).toBe('accepted');
  });

  it('refuses a log that keeps changes for a shorter time than it needs them', async () => {
    const scene = new Scene();
    await scene.publish({ maxTokenAgeSeconds: 3_600 });
    const api = scene.process();
    await scene.time.advance(10_000);
    expect(verdict(api, START)).toBe('generations_unavailable');
    expect(api.follower.status()).toMatchObject({
      source: 'starting',
      lastError:
        'the log keeps changes for 120 min, this process needs those of 1441 min: raise maxTokenAgeSeconds of the publisher',
    });
  });

  it('replaces a reader that hangs', async () => {
    const time = fakeTime(START);
    const source = memoryOn(time);
    let readers = 0;
    const hanging: GenerationSource = {
      mark: false,
      reader: () => (readers++ === 0 ? { next: () => new Promise(() => {}), close() {} } : source.reader()),
    };
    await source.append([['pos', START]]);
    const api = startFollower({ source: hanging }, time);
    await time.advance(5_500);
    expect(verdict(api, START - 1)).toBe('superseded');
    expect(api.follower.status()).toMatchObject({ source: 'fresh', failures: 1, reads: 1 });
  });
});

describe('an engine that responds before the wait is over', () => {
  /** Questions in 5 s to an engine whose nth response is this. */
  async function questions(
    respond: (n: number) => readonly Change[],
  ): Promise<{ count: number; api: StartedFollower }> {
    const time = fakeTime(START);
    let count = 0;
    const mark = (): Mark => markAt(time.clock());
    const next = (): Promise<Batch> => Promise.resolve({ changes: respond(count++), mark: mark(), end: true });
    const api = startFollower({ source: { mark: true, reader: () => ({ next, close() {} }) } }, time);
    // Turns of the event loop, in which no time passes.
    await settle(150);
    await time.advance(5_000);
    await api.follower.close();
    expect(time.pending).toBe(0);
    return { count, api };
  }

  it.each<[string, readonly Change[]]>([
    ['with nothing', []],
    ['with its last change, again and again', [['pos', START]]],
    ['with an entry that is not a change', [['*', START]]],
    ['with a floor of the future', [['pos', START + HOUR]]],
  ])('is asked four times a second at most: %s', async (_what, changes) => {
    const { count } = await questions(() => changes);
    expect(count).toBeGreaterThan(19);
    expect(count).toBeLessThanOrEqual(23);
  });

  it('is asked again without a pause while it brings changes', async () => {
    const { count, api } = await questions((n) => (n < 100 ? [['pos', START - 200 + n]] : []));
    expect(count).toBeGreaterThan(118);
    expect(verdict(api, START - 102)).toBe('superseded');
  });
});

describe('a log without a mark', () => {
  it('is fresh as long as it can be read', async () => {
    const time = fakeTime(START);
    const source = memoryOn(time);
    const api = startFollower({ source }, time);
    await time.advance(0);
    expect(api.follower.status()).toEqual({
      source: 'fresh',
      changes: 'source',
      ageMs: 0,
      floors: 0,
      reads: 1,
      failures: 0,
    });
    await time.advance(2 * HOUR);
    expect(verdict(api, START)).toBe('accepted');
    await source.append([['pos', START + 1]]);
    await time.advance(0);
    expect(verdict(api, START)).toBe('superseded');
  });
});

describe('close()', () => {
  it.each([true, false])(
    'ends the reads; it closes the source where it belongs to the follower: %s',
    async (ownsSource) => {
      const time = fakeTime(START);
      const source = memoryOn(time);
      const { follower } = startFollower({ source, ownsSource }, time);
      await time.advance(0);
      await follower.close();
      await time.advance(HOUR);
      expect(time.pending).toBe(0);
      const appended = source.append([['pos', START]]);
      if (ownsSource) await expect(appended).rejects.toThrow('the log is closed');
      else await appended;
    },
  );
});

describe('a clock that was set, or a process that was suspended', () => {
  it.each([3_600_000, -3_600_000])('by %i ms: the log is read again as soon as the wait ends', async (stepMs) => {
    const time = fakeTime(START);
    const { follower } = startFollower({ source: memoryOn(time) }, time);
    await time.advance(0);
    expect(follower.status().source).toBe('fresh');
    time.step(stepMs);
    expect(follower.status().source).toBe('stale');
    await time.advance(5_000);
    expect(follower.status().source).toBe('fresh');
    await follower.close();
  });
});
