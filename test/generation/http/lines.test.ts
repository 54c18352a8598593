import fc from 'fast-check';
import { httpGenerations } from '../../../src/generation/http/source';
import type { Floor } from '../../../src/generation/source';
import { fakeTime } from '../../support/fake-time';
import { feedServer, until } from './feed-server';
import type { FeedServer } from './feed-server';
import { START, keptLog, reasonOf, startVerifier } from '../fixtures';

const TYPE = { 'content-type': 'application/x-ndjson' };
const HEAD = `{"now":${START},"count":2}\n`;
const POS = '{"client_id":"pos","generation":7}\n';
const CAFE = '{"client_id":"café 🍔","generation":8}\n';

/** What a source reads from a response that arrives in these pieces. */
async function readPieces(pieces: readonly (string | Uint8Array)[]): Promise<{ floors: Floor[]; nowMs: number }> {
  const body = new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(Buffer.from(piece));
      controller.close();
    },
  });
  const response = new Response(body, { headers: TYPE });
  const time = fakeTime(START);
  const source = httpGenerations({
    url: 'https://login.example',
    fetch: () => Promise.resolve(response),
    schedule: time.schedule,
    logger: keptLog(),
  });
  const { floors, nowMs } = await source.read(0);
  expect(time.pending).toBe(0);
  return { floors: [...floors], nowMs };
}

describe('a response in lines', () => {
  it('is read wherever its bytes are torn apart', async () => {
    const bytes = Buffer.from(HEAD + POS + CAFE);
    const cuts = fc.array(fc.nat({ max: bytes.length }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(cuts, async (given) => {
        const edges = [0, ...given.toSorted((a, b) => a - b), bytes.length];
        const pieces = edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
        const expected = { floors: [['pos', 7], ['café 🍔', 8]], nowMs: START }; // prettier-ignore
        expect(await readPieces(pieces)).toEqual(expected);
      }),
    );
  });

  it.each([
    ['carriage returns before the line ends', `${HEAD}${POS}${CAFE}`.replaceAll('\n', '\r\n'), 2],
    ['no floors', `{"now":${START},"count":0}\n`, 0],
    ['further members', `{"now":${START},"count":1,"x":1}\n{"client_id":"a","generation":1,"y":[]}\n`, 1],
  ])('may have %s', async (_, body, count) => {
    expect((await readPieces([body])).floors).toHaveLength(count);
  });

  it('is read slice by slice, in whatever pieces it comes', async () => {
    const count = 20_000;
    const lines = Array.from({ length: count }, (_, n) => `{"client_id":"c${n}","generation":${START + n}}\n`);
    const pieces = [`{"now":${START},"count":${count}}\n${lines.join('')}`];
    let turns = 0;
    const counting = setInterval(() => turns++, 0);
    const { floors } = await readPieces(pieces);
    clearInterval(counting);
    expect(floors).toHaveLength(count);
    expect(turns).toBeGreaterThan(2);
  });

  it.each([
    ['nothing', '', 'responded with no line'],
    ['the head alone, torn', '{"now":1,"count":0}', 'ends in the middle of a line'],
    ['a torn last line', HEAD + POS + CAFE.slice(0, -1), 'ends in the middle of a line'],
    ['fewer floors than announced', HEAD + POS, 'responded with 1 floors, announced 2'],
    ['more floors than announced', HEAD + POS + POS + POS, 'responded with 3 floors, announced 2'],
    ['no count', `{"now":${START}}\n${POS}`, 'without a "count" of floors'],
    ['a count as text', `{"now":${START},"count":"1"}\n${POS}`, 'without a "count" of floors'],
    ['no now', `{"count":1}\n${POS}`, 'without "now" in ms'],
    ['null as its head', 'null\n', 'without a "count" of floors'],
    ['a line that is not JSON', `${HEAD}hunter2\n`, 'invalid JSON'],
    ['an empty line', `${HEAD}\n${POS}`, 'invalid JSON'],
    ['a line that is not a floor', `${HEAD}${POS}{"client_id":"","generation":1}\n`, 'not a floor (floors[1])'],
    ['a generation that is not an integer', `${HEAD}{"client_id":"a","generation":1e400}\n`, 'not a floor (floors[0])'],
    ['a line without an end', `${HEAD}${' '.repeat(70_000)}`, 'a line of more than 65536 bytes'],
    ['broken UTF-8', Buffer.from(`${HEAD}"\xff"\n`, 'latin1'), 'invalid UTF-8'],
    ['half a character at its end', Buffer.concat([Buffer.from(HEAD), Buffer.of(0xc3)]), 'invalid UTF-8'],
  ])('with %s is refused', async (_, body, expected) => {
    const failure: unknown = await readPieces([body]).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'SourceError', message: expect.stringContaining(expected) });
    expect((failure as Error).message).toMatch(/^GET https:\/\/login.example\/generations: /);
    expect((failure as Error).message).not.toContain('hunter2');
  });
});

describe('a server that responds in lines', () => {
  let feed: FeedServer;
  beforeEach(async () => {
    feed = await feedServer();
  });
  afterEach(() => feed.stop());

  function followed() {
    const time = fakeTime(START);
    const source = httpGenerations({ url: feed.url, schedule: time.schedule, logger: keptLog() });
    return startVerifier({ source: { read: (sinceMs) => source.read(sinceMs) } }, time);
  }

  it('brings its floors to a verifier, and gets 304 as before', async () => {
    feed.handler = (_, response) => {
      response.writeHead(200, { ...TYPE, etag: '"one"' }).end(HEAD + POS + CAFE);
    };
    const { verifier } = followed();
    await verifier.ready();
    expect(reasonOf(() => verifier.recheck('café 🍔', 7))).toBe('superseded');
    await verifier.close();
  });

  it('and breaks off is a read that failed', async () => {
    feed.handler = (_, response) => {
      response.writeHead(200, TYPE);
      response.write(HEAD + POS, () => response.destroy());
    };
    const { verifier } = followed();
    await verifier.settled();
    expect(verifier.status()).toMatchObject({ source: 'starting', reads: 0, failures: 1 });
    await verifier.close();
  });

  it('has the same time limit as one that responds with JSON', async () => {
    const time = fakeTime(START);
    feed.handler = (_, response) => void response.writeHead(200, TYPE).write(HEAD + POS);
    const source = httpGenerations({ url: feed.url, timeoutMs: 700, schedule: time.schedule, logger: keptLog() });
    const reading = source.read(0);
    reading.catch(() => undefined);
    await until(() => feed.requests.length === 1);
    await time.advance(700);
    await expect(reading).rejects.toThrow('no response within 700 ms');
    expect(time.pending).toBe(0);
  });
});
