import { httpGenerations } from '../../../src/generation/http/source';
import { fakeTime } from '../../support/fake-time';
import { feedServer, json, stream, until } from './feed-server';
import type { FeedServer } from './feed-server';
import { START, keptLog, reasonOf, startVerifier } from '../fixtures';

const EVENT = `id: ${START}\nevent: generation\ndata: {"client_id":"pos","generation":${START}}\n\n`;

let feed: FeedServer;

beforeEach(async () => {
  feed = await feedServer();
});
afterEach(() => feed.stop());

function newSource(url = feed.url) {
  const time = fakeTime(START);
  const logger = keptLog();
  const { clock, schedule } = time;
  const source = httpGenerations({ url, clock, schedule, logger, timeoutMs: 700 });
  const wake = jest.fn();
  const lost = jest.fn<void, [unknown]>();
  const watch = (): Promise<() => void> => source.watch?.(wake, lost) ?? Promise.reject(new Error('no watch'));
  return { time, source, logger, wake, lost, watch };
}

describe('watching /generations/stream', () => {
  it('stands once the stream is open, and wakes on each event', async () => {
    feed.handler = stream(': hello\n\n');
    const { watch, wake } = newSource();
    const stop = await watch();
    expect(feed.requests[0]).toMatchObject({ url: '/generations/stream', headers: { accept: 'text/event-stream' } });
    const [response] = feed.open;
    response?.write(EVENT.slice(0, 20));
    response?.write(EVENT.slice(20) + EVENT);
    await until(() => wake.mock.calls.length === 2);
    stop();
    await until(() => feed.open.size === 0);
  });

  it('hands over the floors of its events before the response to the read, once, and ignores what is not a floor', async () => {
    const entries = [
      '{"client_id":"pos","generation":-1}',
      '{"client_id":"","generation":5}',
      '{"client_id":7}',
      'null',
      'no JSON',
    ];
    const odd = entries.map((data) => `event: generation\ndata: ${data}\n\n`).join('');
    feed.handler = stream(`${odd}event: resumed\ndata: {"client_id":"till","generation":5}\n\n${EVENT}`);
    const { source, watch, wake } = newSource();
    const stop = await watch();
    await until(() => wake.mock.calls.length === 7);
    const taken: unknown[] = [];
    const take = (floors: Iterable<unknown>): Promise<void> => Promise.resolve(void taken.push(...floors));
    // Responds only after the floors of the events were taken.
    feed.handler = (_, response) => void until(() => taken.length > 0).then(() => response.writeHead(500).end());
    await expect(source.read(START, take)).rejects.toThrow('responded with 500');
    expect(taken).toEqual([['pos', START]]);
    feed.handler = json({ now: START, floors: [] });
    await source.read(START, take);
    expect(taken).toEqual([['pos', START]]);
    stop();
  });

  it('does not wake on heartbeats', async () => {
    feed.handler = stream(`: beat\n\n: beat\n\n${EVENT}`);
    const { watch, wake } = newSource();
    const stop = await watch();
    await until(() => wake.mock.calls.length > 0);
    expect(wake).toHaveBeenCalledTimes(1);
    stop();
  });

  it('says when the stream has ended, and sends the last event id when it is opened again', async () => {
    feed.handler = (request, response) => {
      stream(EVENT)(request, response);
      response.end();
    };
    const { watch, lost, time, logger } = newSource();
    await watch();
    await time.advance(5);
    await until(() => logger.lines.length === 1);
    expect(logger.lines).toEqual(['info: the stream of generations has ended']);
    expect(Object.keys(logger.fields[0]!)).toEqual(['source', 'openMs']);
    expect(logger.fields[0]).toMatchObject({ source: `${feed.url}/generations` });
    expect((logger.fields[0] as { openMs: number }).openMs).toBeLessThanOrEqual(5);
    await time.advance(0);
    expect(lost).toHaveBeenCalledTimes(1);
    expect(lost.mock.calls[0]?.[0]).toMatchObject({ message: `GET ${feed.url}/generations: the stream has ended` });
    expect(feed.requests[0]?.headers).not.toHaveProperty('last-event-id');
    feed.handler = stream();
    (await watch())();
    expect(feed.requests[1]?.headers['last-event-id']).toBe(String(START));
  });

  it('never sends an id back that cannot stand in a header', async () => {
    feed.handler = (request, response) => {
      stream('id: 7\ndata: a\n\nid: ä 🍕\ndata: b\n\n')(request, response);
      response.end();
    };
    const { watch, logger } = newSource();
    await watch();
    await until(() => logger.lines.length === 1);
    await watch();
    expect(feed.requests[1]?.headers).not.toHaveProperty('last-event-id');
  });

  it('takes a stream that is silent for 45 s for dead', async () => {
    feed.handler = stream(': hello\n\n');
    const { watch, wake, lost, time } = newSource();
    await watch();
    const [response] = feed.open;
    await time.advance(44_000);
    response?.write(EVENT);
    await until(() => wake.mock.calls.length === 1);
    await time.advance(44_000);
    expect(lost).not.toHaveBeenCalled();
    await time.advance(1_000);
    await until(() => feed.open.size === 0);
    await time.advance(0);
    expect(lost.mock.calls[0]?.[0]).toMatchObject({ message: expect.stringMatching('silent for 45000 ms') as string });
    expect(time.pending).toBe(0);
  });

  it('honours the pause that the server asks for before a reconnection', async () => {
    feed.handler = (request, response) => {
      stream('retry: 7000\n\n')(request, response);
      response.end();
    };
    const { watch, lost, time, logger } = newSource();
    await watch();
    await until(() => logger.lines.length === 1);
    await time.advance(6_999);
    expect(lost).not.toHaveBeenCalled();
    await time.advance(1);
    expect(lost).toHaveBeenCalledTimes(1);
  });

  it('tells nothing after it was stopped', async () => {
    feed.handler = stream();
    const { watch, lost, time } = newSource();
    (await watch())();
    await until(() => feed.open.size === 0);
    await time.advance(100_000);
    expect(lost).not.toHaveBeenCalled();
  });

  it.each<[string, number, string, string]>([
    ['an error', 503, 'text/event-stream', 'responded with 503, expected 200'],
    ['204', 204, 'text/event-stream', 'responded with 204, expected 200'],
    ['a redirect', 307, 'text/event-stream', 'responded with 307; redirects are refused'],
    ['another type', 200, 'text/html', 'another content type than text/event-stream'],
  ])('rejects on %s', async (_, status, contentType, expected) => {
    feed.handler = (_request, response) => {
      response.writeHead(status, { 'content-type': contentType, location: '/x' }).end();
    };
    await expect(newSource().watch()).rejects.toThrow(expected);
    expect(feed.requests).toHaveLength(1);
  });

  it('rejects when no head comes in time', async () => {
    feed.handler = () => undefined;
    const { watch, time } = newSource();
    const watching = watch();
    watching.catch(() => undefined);
    await until(() => feed.requests.length === 1);
    await time.advance(700);
    await expect(watching).rejects.toThrow('no response within 700 ms');
    await until(() => feed.open.size === 0);
  });

  it('gives up a stream whose event never ends', async () => {
    feed.handler = stream(`data: ${'x'.repeat(100_000)}`);
    const { watch, logger, lost, time } = newSource();
    await watch();
    await until(() => logger.lines.length === 1);
    await time.advance(0);
    expect(lost.mock.calls[0]?.[0]).toMatchObject({ message: expect.stringMatching('RangeError') as string });
    await until(() => feed.open.size === 0);
  });
});

describe('a verifier on a token server', () => {
  it('kills the earlier token on an event, after a restart of the server too', async () => {
    let floors = [{ client_id: 'pos', generation: START }];
    feed.handler = (request, response) => {
      if (request.url?.includes('/stream')) stream(': hello\n\n')(request, response);
      else json({ now: START, floors })(request, response);
    };
    const { source, time, logger } = newSource();
    const { verifier } = startVerifier({ source, ownsSource: true }, time);
    await verifier.ready();
    expect(feed.requests.map(({ url }) => url)).toEqual(['/generations/stream', '/generations?since=0']);

    floors = [{ client_id: 'pos', generation: START + 1 }];
    for (const response of feed.open) response.write(EVENT);
    await until(() => reasonOf(() => verifier.recheck('pos', START)) === 'superseded');

    floors = [{ client_id: 'pos', generation: START + 2 }];
    const asked = feed.requests.length;
    for (const response of feed.open) response.destroy();
    await until(() => logger.lines.length === 1);
    await time.advance(1_000);
    await until(() => reasonOf(() => verifier.recheck('pos', START + 1)) === 'superseded');
    const again = feed.requests.slice(asked).find(({ url }) => url === '/generations/stream');
    expect(again?.headers['last-event-id']).toBe(String(START));

    await verifier.close();
    await until(() => feed.open.size === 0);
    expect(time.pending).toBe(0);
  });
});
