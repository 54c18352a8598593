import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { gateApp, remember } from '../support/gate-app';
import { fakeTime } from '../support/fake-time';
import { NOW_MS, token } from '../support/issuer';
import { eventually } from '../support/key-server';
import type { StubResponse } from '../support/key-server';
import { testKey } from '../support/keys';
import { expectRefusal } from '../support/refusals';
import { REFRESH_MS, remoteGate, STALE_MS, TTL_MS } from '../support/remote-gate';
import type { RemoteGate } from '../support/remote-gate';

const [A, B] = [testKey('ES256', 'a'), testKey('ES256', 'b')];
const down: StubResponse = (res) => void res.writeHead(500).end();

describe('the issuer is down', () => {
  let through: RemoteGate;
  beforeEach(async () => {
    through = await remoteGate([A]);
    await through.gate.ready();
    await through.server.stop();
  });
  afterEach(() => through.gate.close());

  const keys = (): unknown => through.gate.status().issuers[0]?.keys;

  it('responds with 200 inside the age limit', async () => {
    await through.pass(TTL_MS - 1);
    expect(keys()).toMatchObject({ state: 'fresh' });
    expect(await through.statusWith(A)).toBe(200);
  });

  it('responds with 200 in the stale window, and logs it', async () => {
    await through.pass(TTL_MS + 1);
    expect(await through.statusWith(A)).toBe(200);
    expect(keys()).toMatchObject({ state: 'stale', lastError: expect.stringContaining('(ECONNREFUSED)') });
    expect(through.log.at('warn')[0]).toMatchObject({
      fields: { issuer: through.server.origin, ageMs: REFRESH_MS },
      message: 'the key set cannot be refreshed, the last good one serves',
    });
    expect(through.gate.status().ready).toBe(true);
  });

  it('responds with 503 after the stale window, never 401, also for a cached token', async () => {
    await through.pass(TTL_MS + STALE_MS - 1);
    const raw = through.token({ key: A });
    await remember(through, raw);
    await through.pass(1);
    through.reached.length = 0;
    for (const presented of [raw, through.token({ key: A }), through.token({ key: B })]) {
      expectRefusal(await through.get(presented), 'keys_unavailable', through);
    }
    expect(keys()).toMatchObject({ state: 'unavailable' });
    expect(through.gate.status().ready).toBe(false);
  });

  it('responds with 503 for an unknown key, because it may be a new one, and fetches once per back-off', async () => {
    for (let index = 0; index < 5; index++) {
      expectRefusal(await through.get(through.token({ key: B })), 'keys_unavailable', through);
    }
    expect(keys()).toMatchObject({ fetches: 2 });
  });

  it('does not use stale keys with keysStaleMs 0', async () => {
    const strict = await remoteGate([A], { keysStaleMs: 0 });
    await strict.gate.ready();
    await strict.server.stop();
    await strict.pass(TTL_MS - 1);
    expect(await strict.statusWith(A)).toBe(200);
    await strict.pass(1);
    expect(await strict.statusWith(A)).toBe(503);
    await strict.gate.close();
  });

  it('recovers when the issuer is back, and logs it', async () => {
    await through.pass(TTL_MS + STALE_MS);
    expect(await through.statusWith(A)).toBe(503);
    through.server.publish(A, B);
    await through.server.start();
    await through.pass(30_000);
    expect([await through.statusWith(A), await through.statusWith(B)]).toEqual([200, 200]);
    expect(through.log.at('info').at(-1)?.message).toBe('the key set of the issuer is available again');
    await through.server.stop();
  });

  it('fetches with growing pauses, at most 30 s', async () => {
    await through.server.start();
    through.server.responses.set('/jwks', down);
    await through.pass(REFRESH_MS);
    const first = through.server.keyFetches;
    await through.pass(10_000);
    expect(through.server.keyFetches - first).toBe(3);
    await through.pass(300_000);
    expect(through.server.keyFetches - first).toBeLessThanOrEqual(3 + 2 + 300 / 22.5);
    await through.server.stop();
  });

  it('treats a clock that steps back as an unknown age: it fetches before it uses the keys', async () => {
    through.time.step(-1_000);
    expect(await through.statusWith(A)).toBe(503);
  });
});

describe('the issuer was never reachable', () => {
  it('fetches once for many requests within the back-off', async () => {
    const through = await remoteGate([A]);
    through.server.responses.set('/jwks', down);
    for (let index = 0; index < 20; index++) {
      expectRefusal(await through.get(through.token({ key: A })), 'keys_unavailable', through, { retryAfter: 1 });
    }
    expect(through.server.keyFetches).toBe(1);
    await through.stop();
  });

  it('does not cache a failure: the next attempt is due within a second', async () => {
    const through = await remoteGate([]);
    expect(await through.statusWith(A)).toBe(503);
    through.server.publish(A);
    await through.pass(1_000);
    expect(await through.statusWith(A)).toBe(200);
    await through.gate.ready();
    await through.stop();
  });
});

describe('the network', () => {
  it.each(['ENOTFOUND', 'ECONNREFUSED', 'EAI_AGAIN', 'CERT_HAS_EXPIRED'])(
    'responds with 503 for %s and names only the code',
    async (code) => {
      const cause = Object.assign(new Error(`${code} of 10.0.0.7 with a secret`), { code });
      const through = gateApp({
        jwksUri: 'https://login.test/jwks',
        fetch: () => Promise.reject(new TypeError('fetch failed', { cause })),
      });
      expectRefusal(await through.get(token()), 'keys_unavailable', through);
      expect(through.log.at('warn')[0]?.fields['detail']).toBe(
        `https://login.test/jwks could not be fetched (${code})`,
      );
      await through.gate.close();
    },
  );

  it.each([
    ['never responds', ''],
    ['stops in the middle of its response', 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"keys":['],
  ])('gives up after 5 s on an issuer that %s', async (_what, response) => {
    let asked = 0;
    const silent = createServer((socket) => {
      // fetch connects once more after an abort, and keeps that connection for a while.
      socket.unref().on('error', () => {});
      socket.on('data', () => {
        asked++;
        socket.write(response);
      });
    }).listen(0, '127.0.0.1');
    silent.unref();
    await once(silent, 'listening');
    const uri = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/jwks`;
    const time = fakeTime(NOW_MS);
    const through = gateApp({ jwksUri: uri, fetch, clock: time.clock, schedule: time.schedule });
    const refused = through.get(token()).then((settled) => settled);
    await eventually(() => asked === 1 && through.presented.length === 1);
    await time.advance(4_999);
    expect(through.log.entries).toEqual([]);
    await time.advance(1);
    expectRefusal(await refused, 'keys_unavailable', through);
    expect(through.log.at('warn')[0]?.fields['detail']).toBe(`${uri} did not respond within 5000 ms`);
    await through.gate.close();
    silent.close();
  });
});
