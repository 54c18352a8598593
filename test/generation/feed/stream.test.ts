import type { IncomingMessage, ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import express from 'express';
import request from 'supertest';
import { memoryGenerations } from '../../../src/generation';
import { fakeTime } from '../../support/fake-time';
import { START, ScriptedSource } from '../fixtures';
import { pass, quiet, startRelay } from './loopback';
import type { StartedRelay } from './loopback';

/** Opens the stream of a relay; what has come so far is in `text()`. */
async function openStream({ link }: StartedRelay, lastEventId?: string) {
  const headers: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
  const response = await link.fetch('https://relay.test/generations/stream', { headers });
  let text = '';
  let ended = false;
  void (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) text += decoder.decode(chunk);
  })()
    .catch(() => undefined)
    .finally(() => (ended = true));
  await quiet();
  const events = (): string[] => text.split('\n\n').filter((event) => event !== '' && event !== ':');
  return { response, text: () => text, events, ended: () => ended };
}

const event = (at: number, clientId: string, generation: number): string =>
  `id: ${at}\nevent: generation\ndata: {"client_id":"${clientId}","generation":${generation}}`;

async function startWithMoves() {
  const time = fakeTime(START);
  const source = memoryGenerations({ clock: time.clock });
  const relay = startRelay(source, time);
  await relay.feed.ready();
  for (const [n, clientId] of ['a', 'b', 'c'].entries()) {
    await pass(time, 1_000);
    await source.publish(clientId, n);
    await quiet();
  }
  return { time, source, relay };
}

describe('the stream of a relay', () => {
  it('sends each move after it took place, with its time as the id', async () => {
    const { time, source, relay } = await startWithMoves();
    const stream = await openStream(relay);
    expect(stream.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(stream.text()).toBe(':\n\n');
    await pass(time, 1_000);
    await source.publish('pos', 7);
    await pass(time, 1);
    expect(stream.events()).toEqual([event(START + 4_000, 'pos', 7)]);
    await source.publish('pos', 6);
    await pass(time, 10_000);
    expect(stream.events()).toHaveLength(1);
  });

  it.each([
    ['the last id', String(START + 2_000), ['b', 'c']],
    ['an id of before', String(START + 1), ['a', 'b', 'c']],
    ['a foreign id', 'x', ['a', 'b', 'c']],
    ['a later id than any', String(START + 9_000), []],
    ['an empty id', '', []],
  ])('replays what moved at or after %s, in order', async (_, id, expected) => {
    const { relay } = await startWithMoves();
    const stream = await openStream(relay, id);
    expect(
      stream.events().map((text) => (JSON.parse(text.split('data: ')[1]!) as { client_id: string }).client_id),
    ).toEqual(expected);
  });

  it('sends two moves of one ms, also when the first was sent already', async () => {
    const { time, source, relay } = await startWithMoves();
    const stream = await openStream(relay);
    await source.publish('first', 1);
    await quiet();
    await source.publish('second', 2);
    await pass(time, 10, 1);
    expect(stream.events().map((text) => text.split('data: ')[1])).toEqual([
      '{"client_id":"first","generation":1}',
      '{"client_id":"second","generation":2}',
    ]);
  });

  it('sends the moves of a page together, and many of them in slices', async () => {
    const source = new ScriptedSource();
    const relay = startRelay(source);
    await quiet();
    const stream = await openStream(relay);
    source.holds(...Array.from({ length: 2_500 }, (_, n): [string, number] => [`c${n}`, n]));
    source.hint();
    await pass(relay.time, 10, 1);
    expect(stream.events()).toHaveLength(2_500);
  });

  it('sends a comment every 15 s', async () => {
    const relay = startRelay(new ScriptedSource());
    await quiet();
    const stream = await openStream(relay);
    await pass(relay.time, 30_000);
    expect(stream.text()).toBe(':\n\n'.repeat(3));
  });

  it('stays open while the floors are stale, and says when they are not any more', async () => {
    const source = new ScriptedSource();
    const relay = startRelay(source);
    await quiet();
    const stream = await openStream(relay);
    source.fails();
    await pass(relay.time, 70_000);
    expect(relay.feed.status().source).toBe('stale');
    source.holds(['pos', 7]);
    await pass(relay.time, 20_000);
    expect(stream.ended()).toBe(false);
    expect(stream.events()).toEqual(['event: resumed\ndata: {}', expect.stringContaining('"pos"')]);
  });

  it('is ended for a reader that takes nothing for 15 s', async () => {
    const { time, relay } = await startWithMoves();
    const response = Object.assign(new Writable({ highWaterMark: 1, write() {} }), {
      setHeader: () => response,
      writeHead: () => response,
    });
    const asked = { url: '/stream', method: 'GET', headers: { 'last-event-id': '0' } };
    relay.feed(asked as unknown as IncomingMessage, response as unknown as ServerResponse);
    await pass(time, 14_999);
    expect([response.destroyed, relay.feed.status().streams]).toEqual([false, 1]);
    await pass(time, 1);
    expect([response.destroyed, relay.feed.status().streams]).toEqual([true, 0]);
  });

  it('ends with the connection', async () => {
    const { relay } = await startWithMoves();
    const stream = await openStream(relay);
    relay.link.cut();
    await quiet();
    expect([stream.ended(), relay.feed.status().streams]).toEqual([true, 0]);
  });
});

describe('mounted in an app of Express', () => {
  it('serves below its path, keeps other headers, and leaves other paths to the app', async () => {
    const { relay } = await startWithMoves();
    const app = express().use((_req, res, next) => {
      res.set('Vary', 'Origin');
      next();
    });
    app.use('/generations', relay.feed);
    app.use((_req, res) => void res.status(404).send('of the app'));
    const { body, headers } = await request(app).get(`/generations?since=${START + 3_000}`);
    expect(body).toEqual({ now: START + 3_000, floors: [{ client_id: 'c', generation: 2 }] });
    expect(headers).toMatchObject({ vary: 'Origin, Accept', age: '0', 'cache-control': 'no-cache' });
    const lines = await request(app).get('/generations/').set('Accept', 'application/x-ndjson').buffer();
    expect(lines.text.split('\n')[0]).toBe(`{"now":${START + 3_000},"count":3}`);
    expect((await request(app).get('/generations/more')).text).toBe('of the app');
    expect((await request(app).post('/generations')).status).toBe(405);
  });
});
