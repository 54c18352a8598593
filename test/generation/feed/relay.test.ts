import { memoryGenerations } from '../../../src/generation';
import type { GenerationsFeedOptions, GenerationSource } from '../../../src/generation';
import { generationsFeed } from '../../../src/generation';
import { fakeTime } from '../../support/fake-time';
import { START, HOUR, ScriptedSource } from '../fixtures';
import { link, pass, quiet, startRelay, through } from './loopback';
import type { Link } from './loopback';

async function get(to: Link, path = '/', headers: Record<string, string> = {}, method = 'GET') {
  const response = await to.fetch(`https://relay.test/generations${path}`, { headers, method });
  return { status: response.status, headers: response.headers, response };
}

const json = async (to: Link, path = '/') => (await (await get(to, path)).response.json()) as Record<string, unknown>;

describe('a relay', () => {
  it('serves the floors of its source, and what moved since a time', async () => {
    const time = fakeTime(START);
    const source = memoryGenerations({ clock: time.clock });
    await source.publish('early', 7);
    const relay = startRelay(source, time);
    await relay.feed.ready();
    expect(await json(relay.link)).toEqual({ now: START, floors: [{ client_id: 'early', generation: 7 }] });
    await pass(time, 1_000);
    await source.publish('late', START);
    await quiet();
    const { now, floors } = await json(relay.link, `/?since=${START + 1_000}`);
    expect([now, floors]).toEqual([START + 1_000, [{ client_id: 'late', generation: START }]]);
    expect(await json(relay.link, `/?since=${START + 1_001}`)).toMatchObject({ floors: [] });
    await relay.feed.close();
  });

  it('returns a floor once, at its last move', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', 7], ['other', 8], ['pos', 9], ['pos', 8]);
    const { link } = startRelay(source);
    await quiet();
    const floors = [{ client_id: 'other', generation: 8 }, { client_id: 'pos', generation: 9 }]; // prettier-ignore
    expect(await json(link)).toMatchObject({ floors });
  });

  it('a move after a read is in every read since the time that was told, whatever its clock does', async () => {
    const time = fakeTime(START);
    const source = memoryGenerations({ clock: () => START });
    const relay = startRelay(source, time);
    await relay.feed.ready();
    for (let n = 0; n < 20; n++) {
      const { now } = await json(relay.link);
      await source.publish('pos', n);
      await quiet();
      await pass(time, 1);
      expect(await json(relay.link, `/?since=${now as number}`)).toMatchObject({ floors: [{ generation: n }] });
    }
  });

  it('is 503 with Retry-After until its first complete read, the stream too', async () => {
    const source = new ScriptedSource();
    source.fails();
    const relay = startRelay(source);
    await quiet();
    for (const path of ['/', '/stream']) {
      const { status, headers, response } = await get(relay.link, path);
      expect([status, headers.get('retry-after'), headers.get('cache-control')]).toEqual([503, '5', 'no-store']);
      expect(headers.get('content-type')).toBe('application/problem+json');
      expect(await response.json()).toMatchObject({ status: 503, code: 'generations_unavailable' });
    }
    expect(relay.feed.status()).toMatchObject({
      source: 'starting',
      floors: 0,
      reads: 0,
      failures: 1,
      lastError: 'Error',
    });
    source.holds(['pos', 7]);
    await pass(relay.time, 500);
    expect((await get(relay.link)).status).toBe(200);
    expect(relay.feed.status()).toMatchObject({ source: 'fresh', ageMs: 0, floors: 1, reads: 1 });
  });

  it('gives its age in whole seconds, rounded up, also with a 304, and is 503 past the longest', async () => {
    const source = new ScriptedSource();
    const { link, time, feed } = startRelay(source, fakeTime(START), { maxStalenessMs: 10_000 });
    await quiet();
    const etag = (await get(link)).headers.get('etag')!;
    source.fails();
    const ages: (string | null)[] = [];
    for (const ms of [1, 999, 1, 8_999]) {
      await pass(time, ms);
      const { status, headers } = await get(link, '/', { 'if-none-match': etag, 'cache-control': 'no-cache' });
      expect([status, headers.get('etag')]).toEqual([304, etag]);
      ages.push(headers.get('age'));
    }
    expect(ages).toEqual(['1', '1', '2', '10']);
    await pass(time, 1);
    expect((await get(link, '/', { 'if-none-match': etag })).status).toBe(503);
    expect(feed.status()).toMatchObject({ source: 'stale', ageMs: 10_001 });
  });

  it('keeps its entity tag while nothing moves, however often it reads', async () => {
    const source = new ScriptedSource();
    source.holds(['pos', 7]);
    const { link, time, feed } = startRelay(source);
    await quiet();
    const etag = (await get(link)).headers.get('etag')!;
    await pass(time, 20_000);
    expect(feed.status().reads).toBe(5);
    expect((await get(link, '/', { 'if-none-match': `"x", W/${etag}` })).status).toBe(304);
    source.holds(['pos', 8]);
    await pass(time, 5_000);
    expect((await get(link, '/', { 'if-none-match': etag })).status).toBe(200);
  });

  it('says from when on it is complete: what the source says, and what it has dropped itself', async () => {
    const source = new ScriptedSource();
    const keptMs = 2 * HOUR;
    source.respond = () => ({ floors: [], nowMs: START, completeFromMs: START - 9 * HOUR });
    const { link, time, feed } = startRelay(source, fakeTime(START), { maxTokenAgeSeconds: 3_600 });
    await quiet();
    expect(await json(link)).toMatchObject({ complete_from: START - 9 * HOUR });
    source.holds(['old', START - keptMs + 10_000], ['new', START], ['counter', 7]);
    await pass(time, 5_000);
    expect(feed.status().floors).toBe(3);
    expect(await json(link)).toMatchObject({ complete_from: START - 9 * HOUR });
    await pass(time, 120_000, 5_000);
    const { complete_from: from, floors } = await json(link);
    expect(floors).toEqual([{ client_id: 'new', generation: START }, { client_id: 'counter', generation: 7 }]); // prettier-ignore
    expect(from).toBeGreaterThan(START - keptMs + 10_000);
    expect(from).toBeLessThanOrEqual(time.clock() - keptMs);
    // The source still has it: that does not bring it back.
    await pass(time, 120_000, 5_000);
    expect(feed.status().floors).toBe(2);
  });

  it('reads everything again after its clock was ahead', async () => {
    const time = fakeTime(START);
    const source = memoryGenerations({ clock: () => START });
    await source.publish('pos', START);
    const { feed } = startRelay(source, time);
    await quiet();
    time.step(30 * HOUR);
    await pass(time, 10_000);
    expect(feed.status()).toMatchObject({ source: 'fresh', floors: 0 });
    time.step(-30 * HOUR);
    expect(feed.status().source).toBe('stale');
    await pass(time, 5_000);
    expect(feed.status()).toMatchObject({ source: 'fresh', floors: 1 });
  });

  it.each([
    ['POST', '/', 405],
    ['DELETE', '/stream', 405],
    ['HEAD', '/', 200],
    ['HEAD', '/stream', 200],
    ['GET', '', 200],
    ['GET', '/?since=x', 400],
    ['GET', '/?since=1&since=2', 400],
    ['GET', '/other', 404],
    ['GET', '/stream/more', 404],
  ])('%s %s: %i', async (method, path, status) => {
    const { link } = startRelay(new ScriptedSource());
    await quiet();
    const response = await get(link, path, {}, method);
    expect(response.status).toBe(status);
    expect(response.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD' : null);
    if (method === 'HEAD') response.response.body?.cancel().catch(() => undefined);
  });

  it('leaves no timer and no stream after close()', async () => {
    const source = new ScriptedSource();
    const { link, feed, time } = startRelay(source);
    await quiet();
    const { response } = await get(link, '/stream');
    expect(feed.status().streams).toBe(1);
    await feed.close();
    expect(await response.text()).toBe(':\n\n');
    await quiet();
    expect([feed.status().streams, time.pending, source.wakes.size]).toEqual([0, 0, 0]);
    expect((await get(link)).status).toBe(503);
  });

  it('names what it follows', async () => {
    const upstream = startRelay(memoryGenerations());
    await upstream.feed.ready();
    const source = through(upstream.link, upstream.time);
    const { feed } = startRelay(source, upstream.time);
    await feed.ready();
    expect(feed.status().via).toEqual([upstream.feed.status().name]);
  });
});

describe('options of generationsFeed()', () => {
  const source: GenerationSource = new ScriptedSource();
  it.each<[unknown, string]>([
    [undefined, 'expected an options object, got undefined'],
    [{}, 'option "source" must be a generation source, such as httpGenerations(), got undefined'],
    [{ source: 'redis://a' }, 'option "source" must be a generation source, such as httpGenerations(), got "redis:'],
    [{ source, maxStaleness: 5 }, 'unknown option "maxStaleness"; did you mean "maxStalenessMs"?'],
    [{ source, name: 'a b' }, 'option "name" must be at most 64 letters, digits and . _ -, got "a b"'],
    [{ source, pollMs: 1 }, 'option "pollMs" must be a number of ms from 10'],
    [{ source, maxTokenAgeSeconds: 0 }, 'option "maxTokenAgeSeconds" must be a number of seconds from 1'],
    [{ source, maxStalenessMs: 0 }, 'option "maxStalenessMs" must be a number of ms from 1'],
    [{ source, readTimeoutMs: 0 }, 'option "readTimeoutMs" must be a number of ms from 1'],
    [{ source, clock: 7 }, 'option "clock" must be a function, got 7'],
  ])('%# are refused', (options, message) => {
    const make = (): unknown => generationsFeed(options as GenerationsFeedOptions);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(`generationsFeed(): ${message}`);
  });
});

it('nothing listens: the reader says so', async () => {
  const source = through(link(), fakeTime(START));
  await expect(source.read(0)).rejects.toThrow('TypeError (ECONNREFUSED)');
});
