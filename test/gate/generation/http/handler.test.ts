import { get } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import request from 'supertest';
import { logHandler } from '../../../../src/gate/generation/http/handler';
import type { Change } from '../../../../src/gate/generation/log';
import { memoryGenerations } from '../../../../src/gate/generation/memory';
import { fakeTime, settle } from '../../../support/fake-time';
import type { FakeTime } from '../../../support/fake-time';
import { START } from '../fixtures';
import { serveLog } from './scene';
import type { LogServer } from './scene';

let time: FakeTime;
let server: LogServer;

beforeEach(async () => {
  time = fakeTime(START);
  server = await serveLog(memoryGenerations({ clock: time.clock }), { schedule: time.schedule, clock: time.clock });
});
afterEach(async () => {
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

  it('has at most 2,000 changes, and the mark with each of its parts', async () => {
    await server.log.append(changes(4_001));
    const seen: object[] = [];
    const ends: boolean[] = [];
    for (let [position, end] = ['', false]; !end;) {
      const { body } = await ask(position === '' ? '' : `?after=${position}`);
      expect(body.changes.length).toBeLessThanOrEqual(2_000);
      expect(body.mark).toMatchObject({ complete_ms: START });
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
    ['?wait=1&wait=1', 'wait must be sent once.'],
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

  it('takes GET and HEAD only', async () => {
    const refused = await request(server.url).post('');
    expect([refused.status, refused.headers['allow'], refused.body.code]).toEqual([
      405,
      'GET, HEAD',
      'method_not_allowed',
    ]);
    const { status, text } = await request(server.url).head('');
    expect([status, text]).toEqual([200, undefined]);
  });

  it('leaves other URLs to the app, or responds with 404', async () => {
    for (const path of ['/other', '/stream']) expect((await ask(path)).status).toBe(404);
    const handler = logHandler({ log: server.log, schedule: time.schedule });
    let status = 0;
    const response = { writeHead: (code: number) => (status = code), end() {} } as unknown as ServerResponse;
    handler({ url: '/other', method: 'GET', headers: {} } as IncomingMessage, response);
    expect(status).toBe(404);
  });
});

/** A request that is held: resolves with what came of it so far. */
function holding(query: string): {
  readonly body: Promise<{ changes: object[]; mark?: object }>;
  readonly isHeld: () => boolean;
} {
  let isHeld = true;
  const body = ask(query)
    .then((response) => response.body)
    .finally(() => (isHeld = false));
  return { body, isHeld: () => isHeld };
}

/** Waits until so many responses are held: each has a timer. */
async function untilHeld(count = 1): Promise<void> {
  while (time.pending < count) await settle();
}

describe('GET /generations with wait', () => {
  let position = '';
  beforeEach(async () => {
    await server.log.append(changes(2));
    ({ position } = (await ask()).body);
  });

  it('responds immediately where changes follow', async () => {
    expect((await ask('?wait=5000')).body.changes).toEqual(entries(changes(2)));
    expect(time.pending).toBe(0);
  });

  it('responds as soon as a change is appended', async () => {
    const held = [holding(`?after=${position}&wait=5000`), holding(`?after=${position}&wait=5000`)];
    await untilHeld(2);
    expect(held.map((one) => one.isHeld())).toEqual([true, true]);
    await server.log.append([['late', START]]);
    for (const { body } of held) expect((await body).changes).toEqual(entries([['late', START]]));
    expect(time.pending).toBe(0);
  });

  it.each([
    ['5000', 5_000],
    ['30000', 30_000],
    ['99999999', 30_000],
  ])('responds without changes after wait=%s, 30 s at most, with a mark of then', async (wait, ms) => {
    const { body, isHeld } = holding(`?after=${position}&wait=${wait}`);
    await untilHeld();
    await time.advance(ms - 1);
    expect(isHeld()).toBe(true);
    await time.advance(1);
    expect(await body).toEqual({ position, end: true, mark: { ...mark, complete_ms: START + ms }, changes: [] });
  });

  it("responds when the publisher's mark has moved", async () => {
    await server.close();
    server = await serveLog(memoryGenerations({ clock: time.clock }), { schedule: time.schedule });
    const { body } = holding('?wait=5000');
    await untilHeld();
    const moved = { epoch: 'one', unit: 1, completeMs: START, keptMs: 90_000_000 };
    await server.log.append([], { expected: undefined, mark: moved });
    expect((await body).mark).toEqual({ epoch: 'one', unit: 1, complete_ms: START, kept_ms: 90_000_000 });
  });

  it('leaves no timer behind a client that is gone', async () => {
    const call = get(`${server.url}?after=${position}&wait=5000`).on('error', () => undefined);
    await untilHeld();
    call.destroy();
    while (time.pending > 0) await settle();
  });

  it('ends what is held when the server closes, and holds nothing from then on', async () => {
    const { body } = holding(`?after=${position}&wait=5000`);
    await untilHeld();
    server.endHeld();
    expect((await body).changes).toEqual([]);
    const refused = await ask(`?after=${position}&wait=5000`);
    expect([refused.status, refused.body.code]).toEqual([503, 'unavailable']);
    expect((await ask(`?after=${position}`)).status).toBe(200);
    expect(time.pending).toBe(0);
  });

  it('leaves a response alone that somebody else has sent in the meantime', async () => {
    let ended = 0;
    const response = { headersSent: true, once() {}, end: () => ended++ } as unknown as ServerResponse;
    const req = { url: `/?after=${position}&wait=5000`, method: 'GET' } as IncomingMessage;
    logHandler({ log: server.log, schedule: time.schedule })(req, response);
    await time.advance(5_000);
    expect([ended, time.pending]).toEqual([0, 0]);
  });

  it('holds no HEAD', async () => {
    expect((await request(server.url).head(`?after=${position}&wait=5000`)).status).toBe(200);
  });

  it.each(['', '-1', '1.5', 'soon', '1e3', '9999999999'])('refuses wait=%s', async (wait) => {
    const { status, body } = await ask(`?wait=${wait}`);
    expect([status, body.detail]).toEqual([400, 'wait must be a whole number of milliseconds.']);
  });
});
