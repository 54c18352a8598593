import { memoryGenerations } from '../../../src/generation';
import { fakeTime } from '../../support/fake-time';
import type { FakeTime } from '../../support/fake-time';
import { START, ScriptedSource, keptLog, reasonOf, startVerifier } from '../fixtures';
import { link, pass, quiet, startRelay, through } from './loopback';
import type { StartedRelay } from './loopback';

/** Three relays one after the other, and a gate at the end. */
function startChain(first: ScriptedSource | ReturnType<typeof memoryGenerations>, time: FakeTime) {
  const relays: StartedRelay[] = [startRelay(first, time)];
  for (let n = 1; n < 3; n++) relays.push(startRelay(through(relays.at(-1)!.link, time), time));
  const { verifier } = startVerifier({ source: through(relays.at(-1)!.link, time) }, time);
  return { relays: relays as [StartedRelay, StartedRelay, StartedRelay], verifier };
}

describe('a chain of three relays', () => {
  it('brings a change to the gate at its end, by hints alone', async () => {
    const time = fakeTime(START);
    const source = memoryGenerations({ clock: time.clock });
    const { relays, verifier } = startChain(source, time);
    // Each was refused until the one before it was ready.
    await pass(time, 10_000);
    expect(verifier.status()).toMatchObject({ source: 'fresh', floors: 0 });
    await pass(time, 1);
    const before = relays.map(({ feed }) => feed.status().reads);
    await source.publish('pos', START + 7);
    await pass(time, 10, 1);
    expect(reasonOf(() => verifier.recheck('pos', START + 6))).toBe('superseded');
    expect(relays.map(({ feed }) => feed.status().reads)).toEqual(before.map((reads) => reads + 1));
    expect(relays[2].feed.status().via).toEqual([relays[0], relays[1]].map(({ feed }) => feed.status().name));
  });

  it('adds up the ages: the gate refuses as soon as the floors are older than it accepts', async () => {
    const time = fakeTime(START);
    const source = new ScriptedSource();
    source.holds(['pos', START]);
    const { relays, verifier } = startChain(source, time);
    await pass(time, 10_000);
    source.fails();
    const lastReadMs = time.clock() - relays[0].feed.status().ageMs!;
    const staleness: [number, string | undefined][] = [];
    while (time.clock() < lastReadMs + 62_000) {
      await pass(time, 500);
      staleness.push([time.clock() - lastReadMs, reasonOf(() => verifier.recheck('pos', START))]);
    }
    // Known floors hold, and each relay rounds up to the next second.
    expect(staleness.filter(([ageMs, reason]) => ageMs > 60_000 && reason === undefined)).toEqual([]);
    expect(staleness.filter(([ageMs, reason]) => ageMs < 57_000 && reason !== undefined)).toEqual([]);
    expect(reasonOf(() => verifier.recheck('pos', START - 1))).toBe('superseded');
    expect(relays.map(({ feed }) => feed.status().source)).toEqual(['stale', 'stale', 'stale']);
    expect(relays[2].link.responses.at(-1)).toBe('503 ');
  });

  it('never says that floors are younger than they are', async () => {
    const time = fakeTime(START);
    const source = new ScriptedSource();
    const { relays, verifier } = startChain(source, time);
    await pass(time, 10_000);
    for (let n = 0; n < 60; n++) {
      if (n === 20) source.fails();
      if (n === 40) source.holds();
      await pass(time, 500);
      const ages = [...relays.map(({ feed }) => feed.status().ageMs!), verifier.status().ageMs!];
      expect(ages).toEqual([...ages].sort((a, b) => a - b));
    }
    expect(verifier.status().source).toBe('fresh');
  });

  it('goes on while a relay in between dies, and again when it is back', async () => {
    const time = fakeTime(START);
    const source = memoryGenerations({ clock: time.clock });
    const { relays, verifier } = startChain(source, time);
    await pass(time, 10_000);
    relays[1].link.feed = undefined;
    relays[1].link.cut();
    await source.publish('pos', START + 7);
    await pass(time, 30_000);
    expect(verifier.status().source).toBe('fresh');
    expect(reasonOf(() => verifier.recheck('pos', START + 6))).toBeUndefined();
    // Another one in its place, with a name and entity tags of its own.
    relays[1].link.feed = startRelay(through(relays[0].link, time), time).feed;
    await pass(time, 30_000);
    expect(reasonOf(() => verifier.recheck('pos', START + 6))).toBe('superseded');
  });

  it('recovers by a hint, not by its back-off', async () => {
    const time = fakeTime(START);
    const source = new ScriptedSource();
    const { verifier } = startChain(source, time);
    await pass(time, 10_000);
    source.fails();
    await pass(time, 100_000);
    expect(verifier.status().source).toBe('stale');
    source.holds();
    source.hint();
    await pass(time, 2_000, 100);
    expect(verifier.status().source).toBe('fresh');
  });
});

describe('a loop of relays', () => {
  const LOOP = 'error: generations come back to the relay that sent them: refused';

  it('is refused from the start, and each says so once', async () => {
    const time = fakeTime(START);
    const end = link();
    const a = startRelay(through(end, time), time, { name: 'a' });
    const b = startRelay(through(a.link, time), time, { name: 'b' });
    end.feed = b.feed;
    await pass(time, 300_000, 5_000);
    for (const { feed, log } of [a, b]) {
      expect(feed.status()).toMatchObject({ source: 'starting', reads: 0 });
      expect(log.lines.filter((line) => line === LOOP)).toHaveLength(1);
      expect(feed.status().via.length).toBeLessThanOrEqual(2);
    }
    expect(a.feed.status().lastError).toMatch(/a loop of relays: a-\w{12} -> b-\w{12} -> a-\w{12}$/);
    expect(a.log.fields[a.log.lines.indexOf(LOOP)]).toEqual({
      feed: a.feed.status().name,
      chain: expect.stringMatching(/^a-\w{12} -> b-\w{12} -> a-\w{12}$/),
    });
  });

  it('of one relay that follows itself is refused', async () => {
    const time = fakeTime(START);
    const end = link();
    const { feed } = startRelay(through(end, time), time);
    end.feed = feed;
    await pass(time, 10_000);
    expect(feed.status()).toMatchObject({ source: 'starting', lastError: expect.stringContaining('a loop of relays') });
  });

  it('that is closed at run time makes all of it stale, and opens again', async () => {
    const time = fakeTime(START);
    const root = startRelay(memoryGenerations({ clock: time.clock }), time);
    const end = link(root.feed);
    const a = startRelay(through(end, time), time);
    const b = startRelay(through(a.link, time), time);
    await pass(time, 5_000);
    expect(b.feed.status().source).toBe('fresh');
    end.feed = b.feed;
    await pass(time, 70_000);
    expect(a.log.lines).toContain(LOOP);
    for (const { feed } of [a, b]) expect(feed.status().source).toBe('stale');
    expect((await b.link.fetch('https://relay.test/generations', {})).status).toBe(503);
    end.feed = root.feed;
    await pass(time, 40_000);
    for (const { feed } of [a, b]) expect(feed.status().source).toBe('fresh');
  });

  it('is not seen in relays that only share a name', async () => {
    const time = fakeTime(START);
    const a = startRelay(memoryGenerations({ clock: time.clock }), time, { name: 'same' });
    await quiet();
    const b = startRelay(through(a.link, time), time, { name: 'same' });
    await quiet();
    expect(b.feed.status()).toMatchObject({ source: 'fresh', via: [a.feed.status().name] });
  });

  it('is looked for in the names of any source, and no name of it gets into a header unchecked', async () => {
    const source = new ScriptedSource();
    source.respond = () => ({ floors: [], nowMs: START, via: ['upper', 'a b\r\nx: y', 'é'] });
    const { feed, link: to } = startRelay(source);
    await quiet();
    const { headers } = await to.fetch('https://relay.test/generations', {});
    expect(headers.get('via')).toBe(`1.1 upper, 1.1 ${feed.status().name}`);
  });

  it('is not taken from a polluted prototype', async () => {
    const source = new ScriptedSource();
    const via = { via: ['upper'], completeFromMs: 7 };
    source.respond = () => Object.assign(Object.create(via) as object, { floors: [], nowMs: START });
    const { feed } = startRelay(source);
    await quiet();
    expect(feed.status()).toMatchObject({ source: 'fresh', via: [] });
  });
});

it('a relay in front of several others asks far enough back, whichever responds', async () => {
  const time = fakeTime(START);
  const source = memoryGenerations({ clock: time.clock });
  const [left, right] = [startRelay(source, time), startRelay(source, time)];
  const end = link(left.feed);
  const { verifier } = startVerifier({ source: through(end, time, keptLog()) }, time);
  for (let n = 0; n < 40; n++) {
    end.feed = [left.feed, right.feed][n % 2];
    await source.publish('pos', START + n);
    await pass(time, 5_000, 1_000);
    expect(reasonOf(() => verifier.recheck('pos', START + n - 1))).toBe('superseded');
  }
});
