import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { gateApp, remember } from '../../support/gate-app';
import type { GateAppOptions } from '../../support/gate-app';
import { keyServer, eventually } from '../../support/key-server';
import type { StubResponse, KeyServer } from '../../support/key-server';
import { testKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';
import { gateAt, REFRESH_MS, remoteGate, STALE_MS, TTL_MS } from '../../support/remote-gate';
import type { RemoteGate } from '../../support/remote-gate';
import { fakeTime } from '../../support/fake-time';
import { NOW_MS, token } from '../../support/issuer';

const KEY = testKey();
const NEXT = testKey('ES256', 'next');
const OIDC = '/.well-known/openid-configuration';
const OAUTH = '/.well-known/oauth-authorization-server';

describe('discovery: where the metadata is published', () => {
  const open: { stop(): Promise<void> }[] = [];
  afterEach(() => Promise.all(open.splice(0).map((each) => each.stop())));

  /** A server that publishes its metadata at one path only. */
  async function serverWith(path: string, issuerPath: string): Promise<KeyServer> {
    const server = await keyServer(KEY);
    server.responses.delete(OIDC);
    server.responses.set(path, { issuer: server.origin + issuerPath, jwks_uri: `${server.origin}/jwks` });
    return server;
  }

  it.each([
    ['OpenID Connect Discovery 1.0 section 4', '', OIDC, [OIDC, '/jwks']],
    ['RFC 8414 section 3, after a 404 for the first', '', OAUTH, [OIDC, OAUTH, '/jwks']],
    ['OIDC, with a trailing slash', '/', OIDC, [OIDC, '/jwks']],
    ['RFC 8414, with a trailing slash', '/', OAUTH, [OIDC, OAUTH, '/jwks']],
    ['OIDC, with a path', '/realms/shop', `/realms/shop${OIDC}`, [`/realms/shop${OIDC}`, '/jwks']],
    [
      'RFC 8414 section 3.1, with a path',
      '/realms/shop',
      `${OAUTH}/realms/shop`,
      [`/realms/shop${OIDC}`, `${OAUTH}/realms/shop`, '/jwks'],
    ],
    [
      'OIDC, with a path and a trailing slash',
      '/realms/shop/',
      `/realms/shop${OIDC}`,
      [`/realms/shop${OIDC}`, '/jwks'],
    ],
    [
      'RFC 8414, with a path and a trailing slash',
      '/shop/',
      `${OAUTH}/shop`,
      [`/shop${OIDC}`, `${OAUTH}/shop`, '/jwks'],
    ],
  ])('finds it by %s', async (_form, issuerPath, path, requests) => {
    const server = await serverWith(path, issuerPath);
    const issuer = server.origin + issuerPath;
    const through = gateAt(server, { issuer });
    open.push(through);
    await through.get(through.token({ key: KEY, claims: { iss: issuer } })).expect(200);
    expect(server.requests).toEqual(requests);
  });

  it('looks under authUrl when it differs, and still requires the exact issuer', async () => {
    const server = await keyServer(KEY);
    open.push(server);
    server.responses.set(OIDC, { issuer: 'https://login.test', jwks_uri: `${server.origin}/jwks` });
    const through = gateAt(server, { issuer: 'https://login.test', authUrl: server.origin });
    await through.get(through.token({ key: KEY, claims: { iss: 'https://login.test' } })).expect(200);
    await through.gate.close();
  });

  it('requests no metadata when jwksUri is given', async () => {
    const server = await keyServer(KEY);
    const through = gateAt(server, { jwksUri: `${server.origin}/jwks` });
    open.push(through);
    expect(await through.statusWith(KEY)).toBe(200);
    expect(server.requests).toEqual(['/jwks']);
  });

  it('follows a jwks_uri that has changed', async () => {
    const through = await remoteGate([KEY]);
    open.push(through);
    expect(await through.statusWith(KEY)).toBe(200);
    through.server.announce(undefined, `${through.server.origin}/other`);
    through.server.responses.set('/other', { keys: [NEXT.jwk] });
    expect(await through.statusWith(NEXT)).toBe(200);
    expect(await through.statusWith(KEY)).toBe(401);
  });
});

describe('discovery: metadata that cannot be trusted', () => {
  const good = (origin: string): Record<string, unknown> => ({ issuer: origin, jwks_uri: `${origin}/jwks` });
  const raw =
    (status: number, body: string): StubResponse =>
    (res) =>
      void res.writeHead(status, { location: '/jwks' }).end(body);

  /** What both paths respond with, and what the log says about it. */
  const rows: readonly [string, (origin: string) => StubResponse, (origin: string) => string][] = [
    ['not JSON', () => raw(200, '<html>'), (origin) => `${origin}${OIDC} did not respond with a JSON object`],
    ['an empty body', () => raw(200, ''), (origin) => `${origin}${OIDC} did not respond with a JSON object`],
    ['a JSON array', () => raw(200, '[]'), (origin) => `${origin}${OIDC} did not respond with a JSON object`],
    [
      'no issuer',
      (origin) => ({ ...good(origin), issuer: undefined }),
      (origin) => `${origin}${OIDC} names another issuer: expected "${origin}", got none`,
    ],
    [
      'an issuer that is not a string',
      (origin) => ({ ...good(origin), issuer: [origin] }),
      (origin) => `${origin}${OIDC} names another issuer: expected "${origin}", got none`,
    ],
    [
      'another issuer',
      (origin) => ({ ...good(origin), issuer: 'https://evil.test' }),
      (origin) => `${origin}${OIDC} names another issuer: expected "${origin}", got "https://evil.test"`,
    ],
    [
      'the issuer with an additional slash',
      (origin) => ({ ...good(origin), issuer: `${origin}/` }),
      (origin) => `${origin}${OIDC} names another issuer: expected "${origin}", got "${origin}/"`,
    ],
    [
      'an issuer of 300 characters, of which it names 200',
      (origin) => ({ ...good(origin), issuer: 'x'.repeat(300) }),
      (origin) => `${origin}${OIDC} names another issuer: expected "${origin}", got "${'x'.repeat(200)}"`,
    ],
    ['no jwks_uri', (origin) => ({ issuer: origin }), (origin) => `${origin}${OIDC} has no usable jwks_uri`],
    [
      'a jwks_uri that is not a string',
      (origin) => ({ issuer: origin, jwks_uri: 1 }),
      (origin) => `${origin}${OIDC} has no usable jwks_uri`,
    ],
    [
      'a relative jwks_uri',
      (origin) => ({ issuer: origin, jwks_uri: '/jwks' }),
      (origin) => `${origin}${OIDC} has no usable jwks_uri`,
    ],
    [
      'a jwks_uri without TLS',
      (origin) => ({ issuer: origin, jwks_uri: 'http://keys.test/jwks' }),
      (origin) => `${origin}${OIDC} names a jwks_uri that is neither https: nor on loopback, or that has user info`,
    ],
    [
      'a jwks_uri that is a file',
      (origin) => ({ issuer: origin, jwks_uri: 'file:///etc/passwd' }),
      (origin) => `${origin}${OIDC} names a jwks_uri that is neither https: nor on loopback, or that has user info`,
    ],
    [
      'a redirect',
      () => raw(302, ''),
      (origin) => `${origin}${OIDC} responded with 302; redirects are refused, configure the final URL`,
    ],
  ];

  it.each(rows)('responds with 503 for %s, and does not try the other path', async (_what, response, detail) => {
    const server = await keyServer(KEY);
    server.responses.set(OIDC, response(server.origin));
    server.responses.set(OAUTH, good(server.origin));
    const through = gateAt(server);
    expectRefusal(await through.get(through.token({ key: KEY })), 'keys_unavailable', through);
    expect(through.log.at('warn')).toMatchObject([
      {
        fields: { issuer: server.origin, detail: detail(server.origin) },
        message: 'the key set cannot be fetched',
      },
    ]);
    expect(server.requests).toEqual([OIDC]);
    await through.stop();
  });

  it('does not try the other path when the first cannot be fetched', async () => {
    const fetch = jest.fn(() => Promise.reject<Response>(new TypeError('x')));
    const through = gateApp({ keys: undefined, fetch });
    expectRefusal(await through.get(token()), 'keys_unavailable', through);
    expect(fetch.mock.calls.map(([url]: unknown[]) => url)).toEqual([`https://login.test${OIDC}`]);
    await through.gate.close();
  });

  it.each([404, 405, 410, 500, 503])('tries the other path when the first responds with %d', async (status) => {
    const server = await keyServer(KEY);
    server.responses.set(OIDC, raw(status, 'no'));
    server.responses.set(OAUTH, good(server.origin));
    const through = gateAt(server);
    expect(await through.statusWith(KEY)).toBe(200);
    await through.stop();
  });

  it('responds with 503 when both paths are 404', async () => {
    const server = await keyServer(KEY);
    server.responses.delete(OIDC);
    const through = gateAt(server);
    expectRefusal(await through.get(through.token({ key: KEY })), 'keys_unavailable', through);
    expect(through.log.at('warn')[0]?.fields['detail']).toBe(`${server.origin}${OAUTH} responded with 404`);
    await through.stop();
  });

  it('keeps the good keys when the metadata becomes bad later', async () => {
    const through = await remoteGate([KEY]);
    expect(await through.statusWith(KEY)).toBe(200);
    through.server.responses.set(OIDC, { issuer: 'https://evil.test', jwks_uri: `${through.server.origin}/evil` });
    through.server.responses.set('/evil', { keys: [NEXT.jwk] });
    await through.pass(REFRESH_MS + 1);
    expect([await through.statusWith(KEY), await through.statusWith(NEXT)]).toEqual([200, 503]);
    await through.stop();
  });

  it('refuses http: at construction, except on loopback', () => {
    const options: GateAppOptions = { issuer: 'http://login.test', fetch };
    expect(() => gateAt({ origin: 'http://login.test' } as KeyServer, options)).toThrow(
      new TypeError(
        'authenticate(): option "issuer" must be https: (http: is accepted on loopback only, or with allowHttp: true), got "http://login.test"',
      ),
    );
  });
});

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
  it.each([
    ['ENOTFOUND', ''],
    ['ECONNREFUSED', ''],
    ['EAI_AGAIN', ''],
    ['CERT_HAS_EXPIRED', ': its certificate is not valid now'],
  ])('responds with 503 for %s and names only the code, and what it means', async (code, meaning) => {
    const cause = Object.assign(new Error(`${code} of 10.0.0.7 with a secret`), { code });
    const through = gateApp({
      jwksUri: 'https://login.test/jwks',
      fetch: () => Promise.reject(new TypeError('fetch failed', { cause })),
    });
    expectRefusal(await through.get(token()), 'keys_unavailable', through);
    expect(through.log.at('warn')[0]?.fields['detail']).toBe(
      `https://login.test/jwks could not be fetched (${code})${meaning}`,
    );
    await through.gate.close();
  });

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
