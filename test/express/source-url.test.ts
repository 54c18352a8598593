import { explain } from '../../src';
import type { Fetch } from '../../src/token/keys/fetch-json';
import { feedServer, json, stream, until } from '../generation/http/feed-server';
import { gateApp } from '../support/gate-app';
import { AUDIENCE, GENERATION, NOW_MS, token } from '../support/issuer';
import { keyServer } from '../support/key-server';
import { jwks, testKey } from '../support/keys';

const schedule = () => ({ cancel() {} });

describe('a generationSource that is a URL', () => {
  it('is read with the dependencies of the gate, by http: where that is allowed, and closed with the gate', async () => {
    const asked: string[] = [];
    const open = new Set<AbortSignal>();
    const floors = [{ client_id: 'pos-17', generation: GENERATION + 1 }];
    const fetch: Fetch = (url, { signal }) => {
      asked.push(url);
      if (!url.endsWith('/stream')) return Promise.resolve(Response.json({ now: NOW_MS, floors }));
      open.add(signal!);
      const headers = { 'content-type': 'text/event-stream' };
      return Promise.resolve(new Response(new ReadableStream(), { headers }));
    };
    const keys = jwks(testKey());
    const through = gateApp({ keys, generationSource: 'http://feed.test', allowHttp: true, fetch, schedule });
    await through.gate.ready();
    expect(asked).toEqual(['http://feed.test/generations/stream', 'http://feed.test/generations?since=0']);
    await through.get(token()).expect(401);
    await through.get(token({ claims: { generation: GENERATION + 1 } })).expect(200);
    expect([...open].map(({ aborted }) => aborted)).toEqual([false]);
    await through.gate.close();
    expect([...open].map(({ aborted }) => aborted)).toEqual([true]);
  });

  it('is closed by explain() with the gate that it has made from the variables', async () => {
    const before = { ...process.env };
    const [keys, feed] = [await keyServer(testKey()), await feedServer()];
    feed.handler = (req, res) =>
      req.url?.includes('/stream') ? stream(': hello\n\n')(req, res) : json({ now: NOW_MS, floors: [] })(req, res);
    try {
      Object.assign(process.env, {
        TILLGATE_AUTH_URL: keys.origin,
        TILLGATE_AUDIENCE: AUDIENCE,
        TILLGATE_GENERATIONS: `${feed.url}/generations`,
      });
      const { accepted } = await explain(token({ claims: { iss: keys.origin, exp: 1 } }));
      expect(accepted).toBe(false);
      expect(feed.requests.map(({ url }) => url)).toContain('/generations/stream');
      await until(() => feed.open.size === 0);
    } finally {
      process.env = before;
      await Promise.all([keys.stop(), feed.stop()]);
    }
  });
});
