import { httpGenerations } from '../../../src/generation/http/source';
import type { HttpGenerationsOptions } from '../../../src/generation/http/source';
import type { Floor } from '../../../src/generation/source';
import { fakeTime } from '../../support/fake-time';
import { feedServer, json, until } from './feed-server';
import type { FeedServer } from './feed-server';
import { START, keptLog, reasonOf, startVerifier } from '../fixtures';

let feed: FeedServer;

beforeEach(async () => {
  feed = await feedServer();
});
afterEach(() => feed.stop());

function newSource(options: Partial<HttpGenerationsOptions> = {}) {
  const time = fakeTime(START);
  const source = httpGenerations({ url: feed.url, schedule: time.schedule, logger: keptLog(), ...options });
  const read = async (sinceMs: number): Promise<{ floors: Floor[]; nowMs: number }> => {
    const { floors, nowMs } = await source.read(sinceMs);
    return { floors: [...floors], nowMs };
  };
  return { time, source, read };
}

function asked(): (string | undefined)[][] {
  return feed.requests.map(({ url, headers }) => [url, headers['if-none-match']]);
}

describe('reading /generations', () => {
  it('returns floors and clock of the server', async () => {
    feed.handler = json({ now: START, floors: [{ client_id: 'pos', generation: 7 }] });
    expect(await newSource().read(0)).toEqual({ floors: [['pos', 7]], nowMs: START });
    expect(feed.requests[0]).toMatchObject({
      method: 'GET',
      url: '/generations?since=0',
      headers: { accept: 'application/x-ndjson, application/json;q=0.9', 'cache-control': 'no-cache' },
    });
  });

  it.each([
    ['', '/generations?since=5'],
    ['/', '/generations?since=5'],
    ['/generations', '/generations?since=5'],
    ['/tenant/generations?key=a', '/tenant/generations?key=a&since=5'],
  ])('asks the address %j as %j', async (path, url) => {
    feed.handler = json({ now: START, floors: [] });
    await newSource({ url: feed.url + path }).read(5.9);
    expect(feed.requests[0]?.url).toBe(url);
  });

  it('asks conditionally, and takes a 304 for a complete read with the floors and the clock of before', async () => {
    feed.handler = json({ now: START, floors: [{ client_id: 'pos', generation: 7 }] }, { etag: '"one"' });
    const { read } = newSource();
    await read(5);
    feed.handler = (_, response) => response.writeHead(304, { etag: '"one"' }).end();
    expect(await read(5)).toEqual({ floors: [['pos', 7]], nowMs: START });
    expect(await read(9)).toEqual({ floors: [['pos', 7]], nowMs: START });
    expect(asked()).toEqual([
      ['/generations?since=5', undefined],
      ['/generations?since=5', '"one"'],
      ['/generations?since=5', '"one"'],
    ]);
  });

  it('moves the time it asks from on after a change', async () => {
    const { read } = newSource();
    feed.handler = json({ now: START, floors: [] }, { etag: '"one"' });
    await read(5);
    feed.handler = json({ now: START, floors: [] }, { etag: '"two"' });
    for (const sinceMs of [8, 9, 10]) await read(sinceMs);
    expect(asked()).toEqual([
      ['/generations?since=5', undefined],
      ['/generations?since=5', '"one"'],
      ['/generations?since=9', undefined],
      ['/generations?since=9', '"two"'],
    ]);
  });

  it('does not ask for everything again because of the first entity tag', async () => {
    const { read } = newSource();
    feed.handler = json({ now: START, floors: [] }, { etag: '"whole"' });
    await read(0);
    await read(5);
    await read(0);
    await read(0);
    expect(asked()).toEqual([
      ['/generations?since=0', undefined],
      ['/generations?since=5', undefined],
      ['/generations?since=0', undefined],
      ['/generations?since=0', '"whole"'],
    ]);
  });

  it('refuses a 304 that it did not ask for', async () => {
    feed.handler = (_, response) => response.writeHead(304).end();
    await expect(newSource().read(0)).rejects.toThrow('responded with 304');
  });

  it.each<[string, number, string, string, string]>([
    ['an error', 500, 'application/json', '{"now":1,"floors":[]}', 'responded with 500, expected 200'],
    ['204', 204, 'application/json', '', 'responded with 204, expected 200'],
    ['401', 401, 'application/json', '{}', 'responded with 401, expected 200'],
    [
      'HTML',
      200,
      'text/html',
      '<h1>hunter2</h1>',
      'another content type than application/x-ndjson or application/json',
    ],
    ['a lookalike type', 200, 'application/jsonp', '{"now":1,"floors":[]}', 'another content type'],
    ['garbage', 200, 'application/json', 'hunter2', 'invalid JSON'],
    ['nothing', 200, 'application/json', '', 'invalid JSON'],
    ['broken UTF-8', 200, 'application/json', 'latin1:{"now":1,"floors":[],"x":"\xff"}', 'invalid JSON'],
    ['null', 200, 'application/json', 'null', 'without "now" in ms'],
    ['an array', 200, 'application/json', '[]', 'without "now" in ms'],
    ['now as text', 200, 'application/json', '{"now":"1","floors":[]}', 'without "now" in ms'],
    ['a negative now', 200, 'application/json', '{"now":-1,"floors":[]}', 'without "now" in ms'],
    ['no floors', 200, 'application/json', '{"now":1}', 'without an array "floors"'],
    ['floors as an object', 200, 'application/json', '{"now":1,"floors":{}}', 'without an array "floors"'],
    ['null as a floor', 200, 'application/json', '{"now":1,"floors":[null]}', 'not a floor (floors[0])'],
    ['no client id', 200, 'application/json', '{"now":1,"floors":[{"generation":1}]}', 'not a floor (floors[0])'],
    ['an empty id', 200, 'application/json', '{"now":1,"floors":[{"client_id":"","generation":1}]}', 'not a floor'],
    [
      'a generation as text',
      200,
      'application/json',
      '{"now":1,"floors":[{"client_id":"a","generation":"1"}]}',
      'not a floor',
    ],
    ['1e400', 200, 'application/json', '{"now":1,"floors":[{"client_id":"a","generation":1e400}]}', 'not a floor'],
  ])('refuses %s', async (_, status, contentType, body, expected) => {
    feed.handler = (_request, response) => {
      const bytes = body.startsWith('latin1:') ? Buffer.from(body.slice(7), 'latin1') : body;
      response.writeHead(status, { 'content-type': contentType }).end(status === 204 ? undefined : bytes);
    };
    const failure: unknown = await newSource()
      .read(0)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'SourceError', message: expect.stringContaining(expected) });
    expect((failure as Error).message).toMatch(`GET ${feed.url}/generations: `);
    expect((failure as Error).message).not.toContain('hunter2');
  });

  it('refuses a redirect and does not follow it', async () => {
    feed.handler = (_, response) => response.writeHead(302, { location: `${feed.url}/elsewhere` }).end();
    await expect(newSource().read(0)).rejects.toThrow('responded with 302; redirects are refused');
    expect(feed.requests).toHaveLength(1);
  });

  it('refuses a response that is cut off', async () => {
    feed.handler = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{"now":1,', () => response.destroy());
    };
    await expect(newSource().read(0)).rejects.toMatchObject({ name: 'SourceError' });
  });

  it('refuses a response without a size limit', async () => {
    const megabytes = new Uint8Array(64 * 1024 * 1024).fill(32);
    const body = new ReadableStream({ pull: (controller) => controller.enqueue(megabytes) });
    const response = new Response(body, { headers: { 'content-type': 'application/json' } });
    const { read } = newSource({ fetch: () => Promise.resolve(response) });
    await expect(read(0)).rejects.toThrow('responded with more than 268435456 bytes');
  });

  it('says why a server cannot be reached, by code', async () => {
    await feed.stop();
    await expect(newSource().read(0)).rejects.toThrow(/\/generations: TypeError \(ECONNREFUSED\)$/);
  });

  it.each(['head', 'body'])('gives up after the time for one response when the %s does not come', async (part) => {
    feed.handler = (_, response) => {
      if (part === 'body') response.writeHead(200, { 'content-type': 'application/json' }).write('{"now":');
    };
    const { read, time } = newSource({ timeoutMs: 700 });
    const reading = read(0);
    reading.catch(() => undefined);
    await until(() => feed.requests.length === 1);
    await time.advance(700);
    await expect(reading).rejects.toThrow(/\/generations: no response within 700 ms$/);
    await until(() => feed.open.size === 0);
    expect(time.pending).toBe(0);
  });

  it('ends what is under way on close()', async () => {
    feed.handler = () => undefined;
    const { read, source } = newSource();
    const reading = read(0);
    reading.catch(() => undefined);
    await until(() => feed.requests.length === 1);
    await source.close?.();
    await expect(reading).rejects.toThrow('closed');
  });

  it('brings 10,000 floors to a verifier', async () => {
    const floors = Array.from({ length: 10_000 }, (_, n) => ({ client_id: `c${n}`, generation: START + n }));
    feed.handler = json({ now: START, floors });
    const { source, time } = newSource();
    const { verifier } = startVerifier({ source: { read: (sinceMs) => source.read(sinceMs) } }, time);
    await verifier.ready();
    expect(verifier.status().floors).toBe(10_000);
    expect(reasonOf(() => verifier.recheck('c9999', START + 9_998))).toBe('superseded');
    await verifier.close();
  });
});

describe('a connection that the server closes just as it is used again', () => {
  const reset = new TypeError('fetch failed', { cause: Object.assign(new Error('read'), { code: 'ECONNRESET' }) });

  it('is replaced: the request is sent once more', async () => {
    feed.handler = json({ now: START, floors: [] });
    const send = jest.fn(fetch).mockRejectedValueOnce(reset);
    await expect(newSource({ fetch: send }).read(0)).resolves.toEqual({ floors: [], nowMs: START });
    expect(send).toHaveBeenCalledTimes(2);
  });

  it('fails the read when it happens again', async () => {
    const send = jest.fn().mockRejectedValue(reset);
    await expect(newSource({ fetch: send }).read(0)).rejects.toThrow('TypeError (ECONNRESET)');
    expect(send).toHaveBeenCalledTimes(2);
  });
});
