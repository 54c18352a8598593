import { httpGenerations } from '../../../src/generation/http/source';
import type { Floor } from '../../../src/generation/source';
import { fakeTime, settle } from '../../support/fake-time';
import { START, keptLog } from '../fixtures';

const LINES = { 'content-type': 'application/x-ndjson' };

/** Lines of `count` floors, from number `first` on. */
function lines(count: number, first = 0): string {
  return Array.from(
    { length: count },
    (_, n) => `{"client_id":"c${first + n}","generation":${START + first + n}}\n`,
  ).join('');
}

const head = (count: number): string => `{"now":${START},"count":${count}}\n`;

/** A source whose next responses a test gives, and what it asked for. */
function open(...responses: Response[]) {
  const time = fakeTime(START);
  const conditions: (string | undefined)[] = [];
  const source = httpGenerations({
    url: 'https://login.example',
    fetch: (_, { headers, signal }) => {
      conditions.push((headers as Record<string, string>)['if-none-match']);
      const { body, status, headers: given } = responses.shift()!;
      // As the global fetch does, an abort ends the body.
      const abortable = body?.pipeThrough(new TransformStream(), { signal: signal! }) ?? null;
      return Promise.resolve(new Response(abortable, { status, headers: given }));
    },
    schedule: time.schedule,
    timeoutMs: 700,
    logger: keptLog(),
  });
  const taken: Floor[][] = [];
  // eslint-disable-next-line @typescript-eslint/require-await -- takes a page as `SourceReader` does
  const take = async (floors: Iterable<Floor>): Promise<void> => void taken.push([...floors]);
  return { time, source, taken, take, conditions };
}

/** A response whose body a test writes piece by piece. */
function pieces() {
  let body: ReadableStreamDefaultController<Uint8Array> | undefined;
  const response = new Response(new ReadableStream({ start: (controller) => void (body = controller) }), {
    headers: LINES,
  });
  return { response, write: (text: string) => body!.enqueue(Buffer.from(text)), end: () => body!.close() };
}

describe('a large response in lines', () => {
  it('is handed over in pages while it arrives, and not kept for the end', async () => {
    const { response, write, end } = pieces();
    const { source, taken, take } = open(response);
    const reading = source.read(0, take);
    write(head(2_500) + lines(1_200));
    while (taken.length === 0) await settle();
    // What the pieces of 16 KiB have brought by the time they fill a page.
    expect(taken.flat()).toHaveLength(1_025);
    write(lines(1_300, 1_200));
    end();
    const { floors, nowMs } = await reading;
    expect([[...floors], nowMs]).toEqual([[], START]);
    expect(taken.flat().map(([, generation]) => generation - START)).toEqual([...Array(2_500).keys()]);
  });

  it('has the time limit for each page', async () => {
    const { response, write, end } = pieces();
    const { source, time, taken, take } = open(response);
    const reading = source.read(0, take);
    write(head(3_000));
    for (let page = 0; page < 3; page++) {
      await time.advance(600);
      write(lines(1_000, page * 1_000));
      while (taken.length <= page) await settle();
    }
    end();
    await reading;
    expect(time.pending).toBe(0);
  });

  it('has one time limit where nothing takes its pages', async () => {
    const { response, write } = pieces();
    const { source, time } = open(response);
    const reading = source.read(0);
    reading.catch(() => undefined);
    write(head(3_000) + lines(1_000));
    await time.advance(600);
    write(lines(1_000, 1_000));
    await time.advance(100);
    await expect(reading).rejects.toThrow('no response within 700 ms');
    expect(time.pending).toBe(0);
  });

  it('that only trickles makes no progress', async () => {
    const { response, write } = pieces();
    const { source, time, take } = open(response);
    const reading = source.read(0, take);
    reading.catch(() => undefined);
    write(head(3_000));
    for (let floor = 0; floor < 3; floor++) {
      write(lines(1, floor));
      await time.advance(300);
    }
    await expect(reading).rejects.toThrow('no response within 700 ms');
  });

  it('waits for each page to be taken', async () => {
    const { response, write, end } = pieces();
    const { source } = open(response);
    const waiting: (() => void)[] = [];
    const reading = source.read(0, () => new Promise((resolve) => waiting.push(resolve)));
    write(head(2_000) + lines(1_000));
    write(lines(1_000, 1_000));
    end();
    for (let turns = 0; turns < 10; turns++) await settle();
    expect(waiting).toHaveLength(1);
    waiting[0]!();
    while (waiting.length < 2) await settle();
    waiting[1]!();
    // The end of a response that fits into its pages.
    while (waiting.length < 3) await settle();
    waiting[2]!();
    await reading;
  });

  it('fails the read when a page is refused', async () => {
    const { source } = open(new Response(head(1) + lines(1), { headers: LINES }));
    await expect(source.read(0, () => Promise.reject(new TypeError('x')))).rejects.toThrow('TypeError');
  });

  it('of more floors than announced is refused before its end', async () => {
    const { response, write } = pieces();
    const { source, take } = open(response);
    const reading = source.read(0, take);
    write(head(5) + lines(6));
    await expect(reading).rejects.toThrow('responded with 6 floors, announced 5');
  });

  it('cannot announce any number of floors', async () => {
    const { source } = open(new Response(head(100_000_001), { headers: LINES }));
    await expect(source.read(0)).rejects.toThrow('announced 100000001 floors, more than 100000000');
  });

  it.each([
    [1_500, '"one"'],
    [100_001, undefined],
  ])('of %i floors: the next read has the condition %s', async (count, condition) => {
    const etag = { ...LINES, etag: '"one"' };
    const unchanged = condition === undefined ? new Response(head(0), { headers: LINES }) : null;
    const { source, taken, take, conditions } = open(
      new Response(head(count) + lines(count), { headers: etag }),
      unchanged ?? new Response(null, { status: 304 }),
    );
    await source.read(0, take);
    expect(taken.flat()).toHaveLength(count);
    const { floors } = await source.read(0, take);
    expect(conditions).toEqual([undefined, condition]);
    // A 304 is a complete read: it returns every floor again.
    expect([...floors]).toHaveLength(condition === undefined ? 0 : count);
  });

  it('in JSON is handed over in pages too', async () => {
    const floors = Array.from({ length: 2_500 }, (_, n) => ({ client_id: `c${n}`, generation: n }));
    const { source, taken, take } = open(Response.json({ now: START, floors }));
    expect([...(await source.read(0, take)).floors]).toEqual([]);
    expect(taken.map((page) => page.length)).toEqual([1_000, 1_000, 500]);
  });
});

describe('what a relay says about its floors', () => {
  const respond = (headers: Record<string, string>, more = '') =>
    new Response(`{"now":${START},"count":0${more}}\n`, { headers: { ...LINES, ...headers } });

  it.each([
    ['nothing', {}, {}],
    ['their age', { age: '7' }, { ageMs: 7_000 }],
    ['an age in each of two lists', { age: '7, 12' }, { ageMs: 12_000 }],
    ['one relay', { via: '1.1 relay-a' }, { via: ['relay-a'] }],
    [
      'a chain with a proxy',
      { via: '1.1 relay-a, HTTP/1.1 edge.example:80 (Proxy, 1.2),1.1  relay-b ' },
      { via: ['relay-a', 'edge.example:80', 'relay-b'] },
    ],
  ])('%s', async (_, headers, expected) => {
    const { source } = open(respond(headers));
    expect(await source.read(0)).toEqual({ floors: [], nowMs: START, ...expected });
  });

  it('the time that they are complete from', async () => {
    const { source } = open(
      respond({}, `,"complete_from":${START - 5}`),
      Response.json({ now: START, complete_from: 7, floors: [] }),
    );
    expect(await source.read(0)).toMatchObject({ completeFromMs: START - 5 });
    expect(await source.read(0)).toMatchObject({ completeFromMs: 7 });
  });

  it('a 304 has an age and a chain of its own', async () => {
    const { source } = open(
      respond({ etag: '"one"', age: '3', via: '1.1 relay-a' }),
      new Response(null, { status: 304, headers: { age: '9', via: '1.1 relay-b' } }),
    );
    await source.read(0);
    expect(await source.read(0)).toMatchObject({ ageMs: 9_000, via: ['relay-b'] });
  });

  it.each([
    [{ age: 'x' }, '', 'an Age that is not a number of seconds'],
    [{ age: '-1' }, '', 'an Age that is not a number of seconds'],
    [{ age: '5, x' }, '', 'an Age that is not a number of seconds'],
    [{ via: Array(65).fill('1.1 a').join() }, '', 'came through more than 64 relays or proxies'],
    [{}, ',"complete_from":"1"', 'a "complete_from" that is not a time in ms'],
  ])('is refused: %#', async (headers, more, message) => {
    const { source } = open(respond(headers, more));
    await expect(source.read(0)).rejects.toThrow(message);
  });
});
