import { memoryGenerations } from '../../../src/generation';
import { fakeTime } from '../../support/fake-time';
import { START } from '../fixtures';
import { pass, quiet, startRelay, through } from './loopback';

describe('reads of a relay', () => {
  it('ask from the time of a previous response, without an overlap', async () => {
    const time = fakeTime(START);
    const source = memoryGenerations({ clock: time.clock });
    const relay = startRelay(source, time);
    await relay.feed.ready();
    const reader = through(relay.link, time);
    let { resumeMs = 0 } = await reader.read(0);
    for (let change = 1; change <= 6; change++) {
      await pass(time, 1_000);
      await source.publish(`pos-${change}`, START);
      await quiet();
      const snapshot = await reader.read(resumeMs);
      // A conditional request repeats an earlier time.
      const floors = [...snapshot.floors];
      expect(floors.at(-1)).toEqual([`pos-${change}`, START]);
      expect(floors.length).toBeLessThanOrEqual(3);
      expect(snapshot.nowMs).toBeGreaterThanOrEqual(resumeMs);
      resumeMs = snapshot.resumeMs ?? 0;
    }
    await relay.feed.close();
  });

  it('find what another relay behind the same URL had learned before the last response of this one', async () => {
    const time = fakeTime(START);
    const [late, early] = [memoryGenerations({ clock: time.clock }), memoryGenerations({ clock: time.clock })];
    const [slow, quick] = [startRelay(late, time), startRelay(early, time)];
    await Promise.all([slow.feed.ready(), quick.feed.ready()]);
    const reader = through(slow.link, time);
    await early.publish('pos', START);
    await quiet();
    await pass(time, 1_000);
    const first = await reader.read(0);
    expect([...first.floors]).toEqual([]);
    slow.link.feed = quick.feed;
    const second = await reader.read(first.resumeMs ?? 0);
    expect([...second.floors]).toEqual([['pos', START]]);
    // Its clock is a little slow, which is not a reason to read everything.
    expect(second.nowMs).toBeGreaterThanOrEqual(first.resumeMs ?? 0);
    await Promise.all([slow.feed.close(), quick.feed.close()]);
  });
});
