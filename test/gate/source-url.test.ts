import { explain } from '../../src';
import type { Fetch } from '../../src/token/http';
import { serveLog } from '../generation/http/scene';
import { fakeTime } from '../support/fake-time';
import { gateApp } from '../support/gate-app';
import { AUDIENCE, GENERATION, NOW_MS, token } from '../support/issuer';
import { eventually, keyServer } from '../support/key-server';
import { jwks, testKey } from '../support/keys';

describe('a generationSource that is a URL', () => {
  it('is read with the dependencies of the gate, by http: where that is allowed, and closed with the gate', async () => {
    const asked: string[] = [];
    const open = new Set<AbortSignal>();
    let unit = 0;
    const fetch: Fetch = (url, { signal }) => {
      asked.push(url);
      const mark = { epoch: 'e', unit: ++unit, complete_ms: NOW_MS + unit, kept_ms: 90_000_000 };
      const changes = unit === 1 ? [{ client_id: 'pos-17', generation: GENERATION + 1 }] : [];
      if (!url.endsWith('/stream')) return Promise.resolve(Response.json({ position: 'p', end: true, mark, changes }));
      open.add(signal!);
      const headers = { 'content-type': 'text/event-stream' };
      return Promise.resolve(new Response(new ReadableStream(), { headers }));
    };
    const keys = jwks(testKey());
    const time = fakeTime(NOW_MS);
    const follows = { generationSource: 'http://feed.test', allowHttp: true, fetch };
    const through = gateApp({ keys, ...follows, clock: time.clock, schedule: time.schedule });
    await time.advance(250);
    await through.gate.ready();
    expect(asked).toEqual([
      'http://feed.test/generations',
      'http://feed.test/generations/stream',
      'http://feed.test/generations?after=p',
    ]);
    await through.get(token()).expect(401);
    await through.get(token({ claims: { generation: GENERATION + 1 } })).expect(200);
    expect([...open].map(({ aborted }) => aborted)).toEqual([false]);
    await through.gate.close();
    expect([...open].map(({ aborted }) => aborted)).toEqual([true]);
  });

  it('is closed by explain() with the gate that it has made from the variables', async () => {
    const before = { ...process.env };
    const [keys, server] = [await keyServer(testKey()), await serveLog(undefined, { clock: Date.now })];
    try {
      Object.assign(process.env, {
        TILLGATE_AUTH_URL: keys.origin,
        TILLGATE_AUDIENCE: AUDIENCE,
        TILLGATE_GENERATIONS: server.url,
      });
      const { accepted } = await explain(token({ claims: { iss: keys.origin, exp: 1 } }));
      expect(accepted).toBe(false);
      const stream = server.requests.find(({ originalUrl }) => originalUrl === '/generations/stream');
      await eventually(() => stream?.destroyed === true);
    } finally {
      process.env = before;
      await Promise.all([keys.stop(), server.close()]);
    }
  });
});
