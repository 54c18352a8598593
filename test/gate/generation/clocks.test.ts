import type { FollowerOptions } from '../../../src/gate/generation/follow-log';
import type { Change } from '../../../src/gate/generation/log';
import { fakeTime } from '../../support/fake-time';
import { HOUR, START, reasonOf, startFollower } from './fixtures';
import { Scene, markAt, publishing, readBy, running, verdict } from './scene';

const DAY = 24 * HOUR;

/** What a process says about a token of any client. */
function verdictOf({ follower }: ReturnType<Scene['process']>, clientId: string, generation: number): string {
  return reasonOf(() => follower.recheck(clientId, generation)) ?? 'accepted';
}

describe('the clock of a process', () => {
  it('is an hour slow: 11,000 changes are in force when it is right again, with one line in the log', async () => {
    const { scene } = await running();
    let slowMs = HOUR;
    const slow = scene.process({ clock: () => scene.time.clock() - slowMs });
    const changes = Array.from({ length: 11_000 }, (_, n): Change => [`client-${n}`, scene.time.clock() - n]);
    await scene.link.source.append!(changes);
    await scene.time.advance(10_000);
    expect(slow.log.lines).toEqual([
      'error: the log has a generation of the future: it is read again when that time has come',
    ]);
    expect(slow.follower.status()).toMatchObject({
      lastError: 'the log has changes of the future: this clock is slow, or that of the publisher is ahead',
    });
    slowMs = 0;
    await scene.time.advance(12_000);
    const accepted = changes.filter(([id, generation]) => verdictOf(slow, id, generation - 1) !== 'superseded');
    expect(accepted).toEqual([]);
  });

  it('is slow: what is not in force yet counts as unread, so that after maxSilenceMs it refuses', async () => {
    const { scene } = await running();
    const slow = scene.process({ clock: () => scene.time.clock() - 2 * HOUR });
    await scene.time.advance(10_000);
    expect(verdictOf(slow, 'kiosk', 5)).toBe('accepted');
    await scene.change('kiosk');
    await scene.time.advance(870_000);
    expect(verdictOf(slow, 'kiosk', 5)).toBe('accepted');
    await scene.time.advance(30_000);
    expect(verdictOf(slow, 'kiosk', 5)).toBe('generations_unavailable');
    expect(slow.follower.status()).toMatchObject({ source: 'silent' });
  });

  it.each([24 * HOUR, 60_000])(
    'leaps ahead by days, more than once, tokens live for %i ms: no floor is forgotten',
    async (maxTokenAgeMs) => {
      const { scene } = await running();
      let aheadMs = 0;
      const api = scene.process({ clock: () => scene.time.clock() + aheadMs, maxTokenAgeMs });
      await scene.time.advance(2_000);
      for (aheadMs of [3 * DAY, 0, 9 * DAY, 0]) await scene.time.advance(7_000);
      expect(verdict(api, scene.record.get('pos')! - 1)).toBe('superseded');
      expect(verdict(api, scene.record.get('pos')!)).toBe('accepted');
    },
  );
});

/** A log that has been written anew: its oldest floor of `pos` lies so far ahead of the clock of a process. */
async function writtenAnew(aheadMs: number, options: Partial<FollowerOptions> = {}) {
  const scene = new Scene();
  scene.record.set('pos', START);
  await scene.publish();
  const clock = { slowMs: aheadMs };
  const api = scene.process({ clock: () => scene.time.clock() - clock.slowMs, ...options });
  await scene.time.advance(7_000);
  return { scene, api, clock };
}

describe('a floor of the future, of a client without an older floor in the log', () => {
  const tokens = (api: ReturnType<Scene['process']>): string[] =>
    [START - 2 * HOUR, START - 1, START].map((generation) => verdictOf(api, 'pos', generation));
  const UNAVAILABLE = ['generations_unavailable', 'generations_unavailable', 'accepted'];

  it.each([60_000, HOUR])('%i ms ahead: tokens below it are 503 until its time has come', async (aheadMs) => {
    const { scene, api, clock } = await writtenAnew(aheadMs, { maxSilenceMs: 2 * HOUR });
    expect(api.follower.status().source).toBe('fresh');
    expect(tokens(api)).toEqual(UNAVAILABLE);
    expect(verdictOf(api, 'kiosk', 5)).toBe('accepted');
    await scene.time.advance(aheadMs - 20_000);
    expect(tokens(api)).toEqual(UNAVAILABLE);
    clock.slowMs = 9_000;
    expect(tokens(api).slice(0, 2)).toEqual(['superseded', 'superseded']);
    await scene.time.advance(10_000);
    expect(tokens(api)).toEqual(['superseded', 'superseded', 'accepted']);
    // It stays in force, and the log may be gone.
    scene.link.cut = api.link.cut = true;
    clock.slowMs = aheadMs;
    expect(tokens(api).slice(0, 2)).toEqual(['superseded', 'superseded']);
  });

  it('further ahead: it is a wrong entry, and counts as soon as it is an hour ahead', async () => {
    const { scene, api, clock } = await writtenAnew(HOUR + 60_000);
    expect(tokens(api)).toEqual(['accepted', 'accepted', 'accepted']);
    expect(api.log.lines).toEqual([
      'error: the log has a generation of the future: it is read again when that time has come',
    ]);
    clock.slowMs = HOUR - 60_000;
    await scene.time.advance(10_000);
    expect(tokens(api)).toEqual(UNAVAILABLE);
  });

  it('is not hidden by a wrong one of the same client, nor by one that lies further ahead', async () => {
    const { scene, api, clock } = await writtenAnew(30 * 60_000);
    for (const aheadMs of [20 * 60_000, 365 * DAY]) await scene.link.source.append!([['pos', START + aheadMs]]);
    await scene.time.advance(1_000);
    expect(verdictOf(api, 'pos', START)).toBe('generations_unavailable');
    // A clock that steps back leaves one of them within the hour.
    clock.slowMs = 55 * 60_000;
    await scene.time.advance(10_000);
    expect(tokens(api)).toEqual(UNAVAILABLE);
    clock.slowMs = 0;
    await scene.time.advance(10_000);
    expect(tokens(api)).toEqual(['superseded', 'superseded', 'generations_unavailable']);
  });

  it('is a 503 with a detail for the operator; a mount that accepts what is stale accepts, with one warning', async () => {
    const { api } = await writtenAnew(60_000);
    const detail =
      'the client has a floor of the future: this clock is slow, or that of the publisher was ahead when the client changed';
    expect(() => api.follower.verify('pos', { generation: START - 60_000 })).toThrow(
      expect.objectContaining({ status: 503, privateDetail: detail, retryAfterSeconds: 5 }),
    );
    const accepting = await writtenAnew(60_000, { onStale: 'accept' });
    expect(tokens(accepting.api)).toEqual(['accepted', 'accepted', 'accepted']);
    expect(verdictOf(accepting.api, 'kiosk', 5)).toBe('accepted');
    expect(tokens(accepting.api)).toEqual(['accepted', 'accepted', 'accepted']);
    expect(accepting.api.log.lines.filter((line) => line.startsWith('warn:'))).toEqual([
      'warn: generations are out of date, requests are accepted',
    ]);
    expect(accepting.api.log.fields.at(-1)).toMatchObject({ detail });
  });
});

describe('the clock of the publisher', () => {
  it('is ahead for two changes of a client: both are in force when their time has come', async () => {
    const scene = await publishing();
    const api = scene.process();
    await scene.time.advance(1_500);
    const nowMs = scene.time.clock();
    await scene.link.source.append!([
      ['pos', nowMs + 30_000],
      ['pos', nowMs + 50_000],
    ]);
    await scene.time.advance(26_000);
    expect([verdict(api, nowMs + 30_000 - 1), verdict(api, nowMs + 30_000)]).toEqual([
      'superseded',
      'generations_unavailable',
    ]);
    await scene.time.advance(20_000);
    expect([verdict(api, nowMs + 50_000 - 1), verdict(api, nowMs + 50_000)]).toEqual(['superseded', 'accepted']);
  });

  it('is 120 s slow when the log is wiped: the last changes are pending, and the log is not called complete', async () => {
    const scene = new Scene();
    let slowMs = 0;
    const publisher = await scene.publish({ clock: () => scene.time.clock() - slowMs });
    await scene.change('pos');
    scene.record.set('kiosk', START - HOUR);
    slowMs = 120_000;
    scene.engine.wipe();
    await scene.time.advance(3_000);
    expect(scene.engine.state).toMatchObject({ entries: [['kiosk', START - HOUR]], mark: { completeMs: 0 } });
    expect(publisher.status()).toMatchObject({ state: 'starting', pending: 1 });
    expect(scene.log.lines).toContain('warn: changes of the future are pending until their time has come');
    const cold = scene.process();
    await scene.time.advance(10_000);
    expect([verdict(cold, START), cold.follower.status().source]).toEqual(['generations_unavailable', 'starting']);
    slowMs = 0;
    await scene.time.advance(2_000);
    expect(new Map(scene.engine.state.entries)).toEqual(scene.record);
    expect(publisher.status()).toMatchObject({ state: 'current', pending: 0 });
    expect([verdict(cold, START - 1), verdict(cold, START)]).toEqual(['superseded', 'accepted']);
  });

  it('was a day ahead for one change: that change stays pending after a wipe, and does not keep the log from being complete', async () => {
    const scene = new Scene();
    scene.record.set('pos', START + DAY).set('kiosk', START);
    const publisher = await scene.publish();
    expect(scene.engine.state).toMatchObject({ entries: [['kiosk', START]], mark: { completeMs: START } });
    expect(publisher.status()).toMatchObject({ state: 'current', pending: 1 });
    scene.time.step(DAY);
    await scene.time.advance(2_000);
    expect(new Map(scene.engine.state.entries)).toEqual(scene.record);
    expect(publisher.status()).toMatchObject({ state: 'current', pending: 0 });
  });

  it('steps back while a change is pending: it is appended when its time has come', async () => {
    const scene = new Scene();
    let slowMs = 0;
    const publisher = await scene.publish({ clock: () => scene.time.clock() - slowMs });
    scene.link.cut = true;
    expect(await scene.change('pos')).toBe(false);
    slowMs = 120_000;
    scene.link.cut = false;
    await scene.time.advance(5_000);
    expect(publisher.status().pending).toBe(1);
    await scene.time.advance(60_000);
    expect(publisher.status().pending).toBe(0);
    expect(scene.engine.state.entries).toEqual([...scene.record]);
  });

  it('leaps ahead by two days: the log keeps changes for so much longer', async () => {
    const scene = await publishing();
    scene.time.step(2 * DAY);
    await scene.time.advance(1_000);
    expect(scene.engine.state.mark!.keptMs).toBeGreaterThan(90_000_000 + 2 * DAY - HOUR);
  });
});

describe('a mark that is ahead of the clock', () => {
  it('and does not move, as in a restored log, makes no process ready, however often it starts', async () => {
    const time = fakeTime(START);
    const source = readBy(time, () => ({ mark: markAt(START + DAY) }));
    for (let start = 0; start < 3; start++) {
      const cold = startFollower({ source }, time);
      await time.advance(20_000);
      expect(verdict(cold, START)).toBe('generations_unavailable');
      expect(cold.follower.status()).toMatchObject({
        source: 'starting',
        lastError: expect.stringContaining('is ahead of this clock and does not move'),
      });
      await cold.follower.close();
    }
  });

  it('counts when it moves, and later ones that are right again count too', async () => {
    const time = fakeTime(START);
    let mark = markAt(START + DAY);
    const api = startFollower({ source: readBy(time, () => ({ mark })) }, time);
    await time.advance(1_000);
    expect(verdict(api, START)).toBe('generations_unavailable');
    mark = markAt(START + DAY + 1);
    await time.advance(1_000);
    expect(verdict(api, START)).toBe('accepted');
    for (let second = 0; second < 1_000; second++) {
      mark = markAt(time.clock(), 'next');
      await time.advance(1_000);
    }
    expect(verdict(api, START)).toBe('accepted');
  });

  it('goes back with a new epoch of the publisher', async () => {
    const scene = new Scene();
    let aheadMs = DAY;
    await scene.publish({ clock: () => scene.time.clock() + aheadMs });
    await scene.time.advance(4_000);
    aheadMs = 0;
    await scene.time.advance(1_000);
    expect(scene.engine.state.mark!.completeMs).toBeGreaterThan(START + DAY);
    scene.engine.wipe();
    await scene.time.advance(3_000);
    const agoMs = scene.time.clock() - scene.engine.state.mark!.completeMs;
    expect(agoMs >= 0 && agoMs <= 1_000).toBe(true);
  });
});

describe('a wrong entry in the log', () => {
  it.each(['the log goes back', 'the publisher restarts with the change pending'])(
    'of the client of a true change does not keep it out: %s',
    async (when) => {
      const scene = await publishing();
      await scene.link.source.append!([['pos', START * 1_000]]);
      const before = scene.engine.state;
      if (when === 'the log goes back') {
        await scene.change('pos');
        scene.engine.state = before;
      } else {
        scene.link.cut = true;
        expect(await scene.change('pos')).toBe(false);
        scene.publisher?.close();
        scene.link.cut = false;
        await scene.publish();
      }
      await scene.time.advance(3_000);
      expect(scene.engine.state.entries).toContainEqual(['pos', scene.record.get('pos')]);
      const cold = scene.process();
      await scene.time.advance(3_000);
      expect(verdict(cold, scene.record.get('pos')! - 1)).toBe('superseded');
    },
  );
});

describe('a publisher that starts while its record cannot be read', () => {
  it('leaves the log and its mark as they are, and begins when it can', async () => {
    const { scene, api } = await running();
    scene.publisher?.close();
    const { state } = scene.engine;
    let fails = true;
    const publisher = await scene.publish({
      changes() {
        if (fails) throw new Error('no database');
        return scene.record;
      },
    });
    await scene.time.advance(60_000);
    expect(scene.engine.state).toBe(state);
    expect(publisher.status()).toMatchObject({ state: 'failing', lastError: 'Error' });
    expect([verdict(api, START), verdict(api, START - 1)]).toEqual(['accepted', 'superseded']);
    fails = false;
    await scene.time.advance(2_000);
    expect(publisher.status()).toMatchObject({ state: 'current', pending: 0 });
  });
});

it('a request that waits for the first read is answered in readTimeoutMs and a second, also where no read ever ends', async () => {
  const time = fakeTime(START);
  const pause = (): Promise<void> => new Promise((resolve) => void time.schedule(resolve, 10));
  const endless = readBy(time, () => pause().then(() => ({ end: false })));
  const api = startFollower({ source: endless, readTimeoutMs: 2_000 }, time);
  let isSettled = false;
  void api.follower.settled()?.then(() => (isSettled = true));
  await time.advance(2_900);
  expect(isSettled).toBe(false);
  await time.advance(100);
  expect(isSettled).toBe(true);
  expect(verdict(api, START)).toBe('generations_unavailable');
  await api.follower.close();
});
