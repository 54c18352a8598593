import { get } from 'node:http';
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import request from 'supertest';
import { logHandler } from '../../../src/generation/http/handler';
import type { Change } from '../../../src/generation/log';
import { memoryGenerations } from '../../../src/generation/memory';
import { fakeTime, settle } from '../../support/fake-time';
import type { FakeTime } from '../../support/fake-time';
import { START } from '../fixtures';
import { serveLog } from './scene';
import type { LogServer } from './scene';

let time: FakeTime;
let server: LogServer;
const streams = new Set<ClientRequest>();

beforeEach(async () => {
  time = fakeTime(START);
  server = await serveLog(memoryGenerations({ clock: time.clock }), { schedule: time.schedule, clock: time.clock });
});
afterEach(async () => {
  for (const stream of streams) stream.destroy();
  streams.clear();
  await server.close();
});

const changes = (count: number): Change[] => Array.from({ length: count }, (_, n) => [`client-${n}`, START - n]);
const entries = (given: readonly Change[]): object[] =>
  given.map(([client_id, generation]) => ({ client_id, generation }));
const ask = (query = '') => request(server.url).get(query);
const mark = { epoch: expect.any(String), unit: expect.any(Number), complete_ms: START, kept_ms: 90_000_000 };

describe('GET /generations', () => {
  it('has every change, oldest first, and the position behind them', async () => {
    await server.log.append(changes(3));
    const { status, headers, body } = await ask();
    expect(status).toBe(200);
    expect(headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
    expect(body).toEqual({ position: expect.any(String), end: true, mark, changes: entries(changes(3)) });
    await server.log.append([['late', START]]);
    const next = (await ask(`?after=${body.position}`)).body;
    expect(next).toEqual({ position: expect.any(String), end: true, mark, changes: entries([['late', START]]) });
    const { body: last } = await ask(`?after=${next.position}`);
    expect(last).toEqual({ position: next.position, end: true, mark, changes: [] });
  });

  it('has at most 2,000 changes, and the mark with the last of them', async () => {
    await server.log.append(changes(4_001));
    const seen: object[] = [];
    const ends: boolean[] = [];
    for (let [position, end] = ['', false]; !end;) {
      const { body } = await ask(position === '' ? '' : `?after=${position}`);
      expect(body.changes.length).toBeLessThanOrEqual(2_000);
      expect('mark' in body).toBe(body.end);
      seen.push(...body.changes);
      ends.push(body.end);
      ({ position, end } = body);
    }
    expect(seen).toEqual(entries(changes(4_001)));
    expect(ends).toEqual([false, false, true]);
  });

  it('has a mark that moves with each response, under one epoch', async () => {
    const first = (await ask()).body.mark;
    await time.advance(1);
    const second = (await ask()).body.mark;
    expect(second).toEqual({ ...first, unit: first.unit + 1, complete_ms: START + 1 });
  });

  it.each(['', '?after=', '?after=x', '?after=9-9', `?after=${'x'.repeat(256)}`, '?since=5'])(
    'begins at the oldest change with %j',
    async (query) => {
      await server.log.append(changes(2));
      const { status, body } = await ask(query);
      expect([status, body.changes]).toEqual([200, entries(changes(2))]);
    },
  );

  it('begins at the oldest change with a position of before a restart', async () => {
    await server.log.append(changes(2));
    const { position } = (await ask()).body;
    await server.close();
    server = await serveLog(memoryGenerations({ clock: time.clock }), { clock: time.clock });
    await server.log.append([['pos', START]]);
    expect((await ask(`?after=${position}`)).body.changes).toEqual(entries([['pos', START]]));
  });

  it.each([
    ['?after=a&after=b', 'after must be sent once.'],
    [`?after=${'x'.repeat(257)}`, 'after must have at most 256 characters; send the position of a response.'],
  ])('refuses %j', async (query, detail) => {
    const { status, headers, body } = await ask(query);
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      400,
      'application/problem+json',
      'no-store',
    ]);
    expect(body).toEqual({ type: 'about:blank', title: 'Bad Request', status, detail, code: 'invalid_request' });
  });

  it.each(['', '/stream'])('%s takes GET and HEAD only', async (path) => {
    const refused = await request(server.url).post(path);
    expect([refused.status, refused.headers['allow'], refused.body.code]).toEqual([
      405,
      'GET, HEAD',
      'method_not_allowed',
    ]);
    const { status, text } = await request(server.url).head(path).timeout(2_000);
    expect([status, text]).toEqual([200, undefined]);
  });

  it('leaves other URLs to the app, or responds with 404', async () => {
    expect((await ask('/other')).status).toBe(404);
    const handler = logHandler({ log: server.log, schedule: time.schedule });
    let status = 0;
    const response = { writeHead: (code: number) => (status = code), end() {} } as unknown as ServerResponse;
    handler({ url: '/other', method: 'GET', headers: {} } as IncomingMessage, response);
    expect(status).toBe(404);
  });
});

interface Stream {
  readonly response: IncomingMessage;
  text(): string;
  /** Resolves with the first `count` events, once they have come. */
  events(count: number): Promise<string[]>;
  readonly ended: Promise<void>;
}

function openStream(lastEventId?: string): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    const call = get(`${server.url}/stream`, { headers }, (response) => {
      let text = '';
      let notify = (): void => {};
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        notify();
      });
      const ended = new Promise<void>((done) => response.on('close', done));
      const complete = (): string[] => text.split('\n\n').slice(0, -1);
      async function events(count: number): Promise<string[]> {
        while (complete().length < count) await new Promise<void>((wake) => (notify = wake));
        return complete();
      }
      resolve({ response, text: () => text, events, ended });
    });
    call.on('error', reject);
    streams.add(call);
  });
}

const CHANGE = /^id: (\S+)\nevent: change\ndata: (.*)$/;
const MARK = /^event: mark\ndata: (.*)$/;
const dataOf = (event: string): unknown => JSON.parse(CHANGE.exec(event)?.[2] ?? MARK.exec(event)?.[1] ?? 'null');

describe('GET /generations/stream', () => {
  it('has every change as an event, then the mark, then what is appended', async () => {
    await server.log.append(changes(2));
    const stream = await openStream();
    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    const first = await stream.events(3);
    expect(first.map((event) => CHANGE.test(event))).toEqual([true, true, false]);
    expect(first.map(dataOf)).toEqual([...entries(changes(2)), mark]);
    await server.log.append([['late', START]]);
    const all = await stream.events(5);
    expect(all.slice(3).map(dataOf)).toEqual([{ client_id: 'late', generation: START }, mark]);
  });

  it('continues after Last-Event-ID, which is a position; from the oldest change after any other', async () => {
    await server.log.append(changes(3));
    const ids = (await (await openStream()).events(3)).map((event) => CHANGE.exec(event)?.[1]);
    const data = async (id: string) => (await (await openStream(id)).events(2)).map(dataOf);
    expect(await data(ids[1]!)).toEqual([entries(changes(3))[2], mark]);
    expect((await data('x'))[0]).toEqual(entries(changes(1))[0]);
    expect((await ask(`?after=${ids[1]}`)).body.changes).toEqual(entries(changes(3)).slice(2));
  });

  it('has the mark every second, and no timer once the reader is gone', async () => {
    const stream = await openStream();
    for (let beats = 1; beats <= 3; beats++) {
      const events = await stream.events(beats);
      expect(dataOf(events[beats - 1]!)).toEqual({ ...mark, complete_ms: START + (beats - 1) * 1_000 });
      while (time.pending === 0) await settle();
      await time.advance(1_000);
    }
    for (const call of streams) call.destroy();
    while (time.pending > 0) await settle();
  });

  it('ends when the server is to be closed', async () => {
    const stream = await openStream();
    await stream.events(1);
    server.endStreams();
    await stream.ended;
    while (time.pending > 0) await settle();
  });

  it('drops a reader that takes nothing for 15 s', async () => {
    const response = Object.assign(new Writable({ highWaterMark: 1, write() {} }), { writeHead() {} });
    const req = { url: '/stream', method: 'GET', headers: {} } as unknown as IncomingMessage;
    logHandler({ log: server.log, schedule: time.schedule })(req, response as unknown as ServerResponse);
    await time.advance(14_999);
    expect(response.destroyed).toBe(false);
    await time.advance(1);
    expect(response.destroyed).toBe(true);
    await settle();
    expect(time.pending).toBe(0);
  });

  it('has every change for a reader that is slower than the server, in slices', async () => {
    const many = Array.from({ length: 2_500 }, (_, n): Change => [`${'c'.repeat(200)}-${n}`, START]);
    await server.log.append(many);
    const stream = await openStream();
    expect((await stream.events(2_501)).slice(0, 2_500).map(dataOf)).toEqual(entries(many));
  });

  it('is a comment instead of the mark where no publisher keeps one', async () => {
    await server.close();
    server = await serveLog(memoryGenerations(), { schedule: time.schedule });
    expect((await (await openStream()).events(1))[0]).toBe(':');
    expect((await ask()).body).toEqual({ position: expect.any(String), end: true, changes: [] });
  });
});
