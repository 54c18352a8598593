import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import request from 'supertest';
import { feedOf } from '../../src/auth-server/generations/feed';
import type { State } from '../../src/auth-server/storage/state';
import { parseState } from '../../src/auth-server/storage/state-file';
import type { Store } from '../../src/auth-server/storage/store';
import { httpGenerations, memoryGenerations } from '../../src/generation';
import { feedHandler } from '../../src/generation/feed/handler';
import { settle } from '../support/fake-time';
import { closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

let server: TestServer;
const streams = new Set<ClientRequest>();

beforeEach(async () => {
  server = await startServer();
});
afterEach(async () => {
  for (const stream of streams) stream.destroy();
  streams.clear();
  await closeAll();
});

describe('GET /generations', () => {
  it('has every floor, of deleted clients too, and the time to ask from next', async () => {
    const client = await registerClient(server);
    await server.time.advance(1_000);
    const gone = await registerClient(server, { client_id: 'gone' });
    await server.delete('/clients/gone');
    const { status, body } = await server.get('/generations');
    expect(status).toBe(200);
    expect(body).toEqual({
      now: server.time.clock() + 1,
      floors: [
        { client_id: 'pos-17', generation: client.generation },
        { client_id: 'gone', generation: gone.generation + 1 },
      ],
    });
  });

  it('asked since a time: what changed then or later, whatever its generation', async () => {
    await registerClient(server, { client_id: 'early' });
    await server.time.advance(1_000);
    const { now } = (await server.get('/generations')).body;
    const floorsSince = async (since: number) =>
      (await server.get(`/generations?since=${since}`)).body.floors.map(
        (floor: { client_id: string }) => floor.client_id,
      );
    expect(await floorsSince(now)).toEqual([]);
    // The clock steps back: the change must not get a revision before the time that was reported.
    server.time.step(-60_000);
    await registerClient(server, { client_id: 'late' });
    expect(await floorsSince(now)).toEqual(['late']);
    expect(await floorsSince(0)).toEqual(['early', 'late']);
  });

  it('is 304 until something changes, also after a restart', async () => {
    await registerClient(server);
    const { headers } = await server.get('/generations');
    expect(headers['cache-control']).toBe('no-cache');
    server = await server.restart();
    const ask = () => server.get('/generations').set('If-None-Match', headers['etag']!);
    const unchanged = await ask();
    expect(unchanged.status).toBe(304);
    expect(unchanged.text).toBe('');
    expect(unchanged.headers['etag']).toBe(headers['etag']);
    await server.post('/clients/pos-17/revoke');
    const changed = await ask();
    expect(changed.status).toBe(200);
    expect(changed.headers['etag']).not.toBe(headers['etag']);
  });

  it.each(['x', '-1', '1.5', '', '1e3', '99999999999999999'])('since=%s: 400', async (since) => {
    const response = await server.get('/generations').query({ since });
    expect(response.status).toBe(400);
    expect(response.body.detail).toBe(
      `since must be a time in ms since the epoch, such as 1800000000000; got ${JSON.stringify(since)}.`,
    );
  });
});

interface Stream {
  readonly response: IncomingMessage;
  /** What has come so far. */
  text(): string;
  /** Resolves once `count` events have come. */
  events(count: number): Promise<string[]>;
  readonly ended: Promise<void>;
}

function openStream(lastEventId?: string): Promise<Stream> {
  return new Promise((resolve, reject) => {
    const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    const call = get(`${server.url}/generations/stream`, { headers }, (response) => {
      let text = '';
      let notify = (): void => {};
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        notify();
      });
      const ended = new Promise<void>((done) => response.on('close', done));
      const complete = (): string[] => text.split('\n\n').filter((event) => event.startsWith('id:'));
      resolve({
        response,
        text: () => text,
        ended,
        async events(count) {
          while (complete().length < count) await new Promise<void>((wake) => (notify = wake));
          return complete();
        },
      });
    });
    call.on('error', reject);
    streams.add(call);
  });
}

describe('GET /generations/stream', () => {
  it('responds to HEAD immediately, with the headers of a stream', async () => {
    const response = await request(server.url).head('/generations/stream').timeout(2_000);
    expect(response.status).toBe(200);
    expect(response.headers['content-type']).toBe('text/event-stream; charset=utf-8');
  });

  it('sends each change after it took place, with its time as the id', async () => {
    await registerClient(server, { client_id: 'before' });
    const stream = await openStream();
    expect(stream.response.statusCode).toBe(200);
    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
    });
    await server.time.advance(1_000);
    const { generation } = await registerClient(server);
    await server.patch('/clients/pos-17', { scope: 'orders:read orders:write items:read' });
    await server.patch('/clients/pos-17', { description: 'new' });
    const at = server.time.clock();
    expect(await stream.events(2)).toEqual([
      `id: ${at}\nevent: generation\ndata: {"client_id":"pos-17","generation":${generation}}`,
      `id: ${at + 2}\nevent: generation\ndata: {"client_id":"pos-17","generation":${generation + 1}}`,
    ]);
  });

  it.each([
    ['the last id', (ids: number[]) => String(ids[1]), ['b', 'c']],
    ['an id of before', (ids: number[]) => String(ids[0]! - 1), ['a', 'b', 'c']],
    ['an id that is none of ours', () => 'x', ['a', 'b', 'c']],
  ])('replays what moved at or after %s, in order', async (_name, pick, expected) => {
    const ids: number[] = [];
    for (const id of ['a', 'b', 'c']) {
      await server.time.advance(1_000);
      ids.push((await registerClient(server, { client_id: id })).generation);
    }
    const stream = await openStream(pick(ids));
    const clients = (await stream.events(expected.length)).map(
      (event) => JSON.parse(event.split('data: ')[1]!).client_id,
    );
    expect(clients).toEqual(expected);
  });

  it('sends a comment every 15 s', async () => {
    const stream = await openStream();
    for (let beats = 1; beats <= 3; beats += 1) {
      while (stream.text() !== ':\n\n'.repeat(beats)) await settle();
      await server.time.advance(15_000);
    }
    expect(stream.text().replaceAll(':\n\n', '')).toBe('');
  });

  it('ends when the token server is closed, and leaves no timer', async () => {
    const stream = await openStream();
    expect(server.time.pending).toBe(1);
    await server.auth.close();
    await stream.ended;
    while (server.time.pending > 0) await settle();
  });

  it('leaves no timer when the reader goes', async () => {
    await openStream();
    for (const stream of streams) stream.destroy();
    while (server.time.pending > 0) await settle();
  });

  it('drops a reader that takes nothing for 15 s', async () => {
    await registerClient(server);
    const store = { state: stateOf(server), subscribe: () => () => {}, nowMs: () => 0 } as unknown as Store;
    const response = Object.assign(new Writable({ highWaterMark: 1, write() {} }), { writeHead() {} });
    const request = { url: '/stream', method: 'GET', headers: { 'last-event-id': '0' } } as unknown as IncomingMessage;
    feedHandler(feedOf(store), server.time.schedule)(request, response as unknown as ServerResponse);
    await server.time.advance(14_999);
    expect(response.destroyed).toBe(false);
    await server.time.advance(1);
    expect(response.destroyed).toBe(true);
    await settle();
    expect(server.time.pending).toBe(0);
  });

  it('replays everything to a reader that is slower than the server', async () => {
    const names = Array.from({ length: 2_000 }, (_, index) => `${'c'.repeat(100)}-${index}`);
    await Promise.all(names.map((client_id) => registerClient(server, { client_id })));
    const stream = await openStream('0');
    expect(await stream.events(names.length)).toHaveLength(names.length);
  });
});

/** The state of a server as it stands on disk. */
function stateOf(server: TestServer): State {
  return parseState(readFileSync(join(server.dataDir, 'state.json'), 'utf8'));
}

it('feeds httpGenerations: whole, then what changed', async () => {
  const source = httpGenerations({ url: server.url });
  const client = await registerClient(server);
  const first = await source.read(0);
  expect([...first.floors]).toEqual([['pos-17', client.generation]]);
  const woken = new Promise<void>((resolve) => void source.watch!(resolve));
  await server.get('/generations');
  await server.post('/clients/pos-17/revoke');
  await woken;
  expect([...(await source.read(first.nowMs)).floors]).toEqual([['pos-17', client.generation + 1]]);
  await source.close?.();
});

it('publishes everything at the start, and each change before the response', async () => {
  const generations = memoryGenerations({ clock: server.time.clock });
  const floors = async () => Object.fromEntries((await generations.read(0)).floors);
  const client = await registerClient(server);
  await registerClient(server, { client_id: 'gone' });
  await server.delete('/clients/gone');
  server = await server.restart({ generationSource: generations });
  expect(await floors()).toEqual({ 'pos-17': client.generation, gone: client.generation + 1 });
  const { generation } = (await server.post('/clients/pos-17/revoke')).body;
  expect((await floors())['pos-17']).toBe(generation);
  await server.delete('/clients/pos-17');
  expect((await floors())['pos-17']).toBe(generation + 1);
});
