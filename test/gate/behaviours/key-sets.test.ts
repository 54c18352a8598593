import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { fakeTime } from '../../support/fake-time';
import { gateApp, remember } from '../../support/gate-app';
import { NOW_MS, token } from '../../support/issuer';
import { keyServer, eventually } from '../../support/key-server';
import type { StubResponse } from '../../support/key-server';
import { testKey, newKey } from '../../support/keys';
import { expectRefusal } from '../../support/refusals';
import { gateAt, REFRESH_MS, remoteGate, STALE_MS, TTL_MS } from '../../support/remote-gate';
import type { RemoteGate } from '../../support/remote-gate';

const KEY = testKey();
const NEXT = testKey('ES256', 'next');
const OIDC = '/.well-known/openid-configuration';
const OAUTH = '/.well-known/oauth-authorization-server';

/** What a test has opened; it is closed afterwards. */
const open: { stop(): Promise<void> }[] = [];
afterEach(() => Promise.all(open.splice(0).map((each) => each.stop())));

function opened<Opened extends { stop(): Promise<void> }>(each: Opened): Opened {
  open.push(each);
  return each;
}

describe('discovery: where the metadata is published', () => {
  it.each([
    ['OpenID Connect Discovery 1.0 section 4', '', OIDC, [OIDC, '/jwks']],
    ['RFC 8414 section 3, after a 404 for the first', '', OAUTH, [OIDC, OAUTH, '/jwks']],
    ['OIDC, with a trailing slash', '/', OIDC, [OIDC, '/jwks']],
    ['RFC 8414, with a trailing slash', '/', OAUTH, [OIDC, OAUTH, '/jwks']],
    ['OIDC, with a path', '/tenants/shop', `/tenants/shop${OIDC}`, [`/tenants/shop${OIDC}`, '/jwks']],
    ['RFC 8414 section 3.1, with a path', '/shop', `${OAUTH}/shop`, [`/shop${OIDC}`, `${OAUTH}/shop`, '/jwks']],
    ['OIDC, with a path and a trailing slash', '/shop/', `/shop${OIDC}`, [`/shop${OIDC}`, '/jwks']],
    ['RFC 8414, with a path and a slash', '/shop/', `${OAUTH}/shop`, [`/shop${OIDC}`, `${OAUTH}/shop`, '/jwks']],
  ])('finds it by %s', async (_form, issuerPath, path, requests) => {
    const server = await keyServer(KEY);
    const issuer = server.origin + issuerPath;
    server.responses.delete(OIDC);
    server.responses.set(path, { issuer, jwks_uri: `${server.origin}/jwks` });
    const through = opened(gateAt(server, { issuer }));
    await through.get(through.token({ key: KEY, claims: { iss: issuer } })).expect(200);
    expect(server.requests).toEqual(requests);
  });

  it('looks under authUrl when it differs, and still requires the exact issuer', async () => {
    const server = await keyServer(KEY);
    const issuer = 'https://login.test';
    server.responses.set(OIDC, { issuer, jwks_uri: `${server.origin}/jwks` });
    const through = opened(gateAt(server, { issuer, authUrl: server.origin }));
    await through.get(through.token({ key: KEY, claims: { iss: issuer } })).expect(200);
  });

  it('follows a jwks_uri that has changed', async () => {
    const through = opened(await remoteGate([KEY]));
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

  const notJson = 'did not respond with a JSON object';
  const LONG = 'x'.repeat(300);
  const unusable = 'has no usable jwks_uri';
  const noTls = 'names a jwks_uri that is neither https: nor on loopback, or that has user info';
  const ofProxy =
    '; behind a proxy that ends TLS the server must read the forwarded headers, or be told its public URL';
  const another = (got: string): string => `names another issuer: expected "$origin", got ${got}`;

  /** A response of both paths, or what differs from good metadata, and what the log says; `$origin` is the server's. */
  const rows: readonly [string, StubResponse, string][] = [
    ['not JSON', raw(200, '<html>'), notJson],
    ['an empty body', raw(200, ''), notJson],
    ['a JSON array', raw(200, '[]'), notJson],
    ['no issuer', { issuer: undefined }, another('none')],
    ['an issuer that is not a string', { issuer: ['$origin'] }, another('none')],
    ['another issuer', { issuer: 'https://evil.test' }, another('"https://evil.test"')],
    ['the issuer with an additional slash', { issuer: '$origin/' }, another('"$origin/"')],
    ['an issuer of 300 characters, of which it names 200', { issuer: LONG }, another(`"${LONG.slice(100)}"`)],
    ['no jwks_uri', { jwks_uri: undefined }, unusable],
    ['a jwks_uri that is not a string', { jwks_uri: 1 }, unusable],
    ['a relative jwks_uri', { jwks_uri: '/jwks' }, unusable],
    ['a jwks_uri without TLS', { jwks_uri: 'http://keys.test/jwks' }, `${noTls}: http://keys.test/jwks${ofProxy}`],
    ['a jwks_uri that is a file', { jwks_uri: 'file:///etc/passwd' }, noTls],
    ['a redirect', raw(302, ''), 'responded with 302; redirects are refused, configure the final URL'],
  ];

  it.each(rows)('responds with 503 for %s, and does not try the other path', async (_what, response, detail) => {
    const server = await keyServer(KEY);
    const here = (text: string): string => text.replaceAll('$origin', server.origin);
    const document = (): object => JSON.parse(here(JSON.stringify({ ...good('$origin'), ...response }))) as object;
    server.responses.set(OIDC, typeof response === 'function' ? response : document());
    server.responses.set(OAUTH, good(server.origin));
    const through = opened(gateAt(server));
    expectRefusal(await through.get(through.token({ key: KEY })), 'keys_unavailable', through);
    const fields = { issuer: server.origin, detail: here(`$origin${OIDC} ${detail}`) };
    expect(through.log.at('warn')).toMatchObject([{ fields, message: 'the key set cannot be fetched' }]);
    expect(server.requests).toEqual([OIDC]);
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
    expect(await opened(gateAt(server)).statusWith(KEY)).toBe(200);
  });

  it('responds with 503 when both paths are 404', async () => {
    const server = await keyServer(KEY);
    server.responses.delete(OIDC);
    const through = opened(gateAt(server));
    expectRefusal(await through.get(through.token({ key: KEY })), 'keys_unavailable', through);
    expect(through.log.at('warn')[0]?.fields['detail']).toBe(`${server.origin}${OAUTH} responded with 404`);
  });
});

const [A, B, C] = [testKey('ES256', 'a'), testKey('ES256', 'b'), testKey('ES256', 'c')];

it('serves in the stale window while the issuer is down, then responds with 503, never 401, also to a cached token', async () => {
  const through = opened(await remoteGate([A]));
  const { gate, server } = through;
  await gate.ready();
  await server.stop();
  await through.pass(TTL_MS + STALE_MS - 1);
  const raw = through.token({ key: A });
  await remember(through, raw);
  expect(gate.status()).toMatchObject({ ready: true, issuers: [{ keys: { state: 'stale' } }] });
  expect(gate.status().issuers[0]?.keys).toMatchObject({ lastError: expect.stringContaining('(ECONNREFUSED)') });
  await through.pass(1);
  for (const presented of [raw, through.token({ key: A }), through.token({ key: B })]) {
    expectRefusal(await through.get(presented), 'keys_unavailable', through);
  }
  expect(gate.status()).toMatchObject({ ready: false, issuers: [{ keys: { state: 'unavailable' } }] });
});

describe('the network', () => {
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

describe('key set: what changes', () => {
  let through: RemoteGate;
  beforeEach(async () => {
    through = opened(await remoteGate([A]));
    await through.gate.ready();
  });

  it('refuses a removed key within the age limit, also for a cached token', async () => {
    const raw = through.token({ key: A });
    await remember(through, raw);
    through.server.publish(B);
    await through.pass(TTL_MS);
    expectRefusal(await through.get(raw), 'unknown_key', through);
    expectRefusal(await through.get(through.token({ key: A })), 'unknown_key', through);
  });

  it('refuses a key that was replaced under its kid within the age limit', async () => {
    const raw = through.token({ key: A });
    await remember(through, raw);
    through.server.publish(newKey('ES256', 'a'));
    await through.pass(TTL_MS);
    expectRefusal(await through.get(raw), 'bad_signature', through);
  });

  it('refuses an algorithm that a key no longer has, also for a cached token', async () => {
    const { alg: _alg, ...bare } = testKey('RS256').jwk;
    const key = { ...testKey('RS256'), alg: 'PS256' };
    through.server.publish({ ...key, jwk: bare });
    await through.pass(TTL_MS);
    const raw = through.token({ key });
    await remember(through, raw);
    through.server.publish({ ...key, jwk: { ...bare, alg: 'RS256' } });
    await through.pass(TTL_MS);
    expectRefusal(await through.get(raw), 'algorithm_not_allowed', through);
    expect(await through.statusWith(testKey('RS256'))).toBe(200);
  });

  it('keeps a cached token across a refresh that changes nothing: the same object is returned', async () => {
    const raw = through.token({ key: A });
    await remember(through, raw);
    await through.pass(REFRESH_MS);
    expect(through.server.keyFetches).toBe(2);
    await through.get(raw).expect(200);
    const [, remembered, recalled] = through.decisions.map(({ auth }) => auth);
    expect(remembered).toBeDefined();
    expect(recalled).toBe(remembered);
  });

  it('refuses no request while two rotations follow each other within 30 s', async () => {
    through.server.publish(A, B);
    expect(await through.statusWith(B)).toBe(200);
    await through.pass(10_000);
    through.server.publish(A, B, C);
    expect(await through.statusWith(C)).toBe(200);
    expect([await through.statusWith(A), await through.statusWith(B)]).toEqual([200, 200]);
    expect(through.server.keyFetches).toBe(3);
  });

  it('responds with 429 and a correct Retry-After while no fetch for a new key is allowed', async () => {
    for (const kid of ['x', 'y']) await through.get(through.token({ key: A, header: { kid } })).expect(401);
    through.server.publish(A, B);
    const response = await through.get(through.token({ key: B }));
    expectRefusal(response, 'too_many_unknown_keys', through, { retryAfter: 5 });
    await through.pass(5_000);
    expect(await through.statusWith(B)).toBe(200);
  });

  it('accepts a token of a new key whose kid somebody has named before it was published', async () => {
    await through.get(through.token({ key: B, header: { kid: 'b' } })).expect(401);
    through.server.publish(A, B);
    const iat = through.time.clock() / 1000;
    await through.get(through.token({ key: B, claims: { iat } })).expect(200);
    expect(through.server.keyFetches).toBe(3);
  });

  it.each([
    ['70', 'too_many_unknown_keys'],
    [' 70, 0', 'too_many_unknown_keys'],
    ['0', 'unknown_key'],
    ['59', 'unknown_key'],
    ['-70', 'unknown_key'],
    ['70.5', 'unknown_key'],
    ['x', 'unknown_key'],
  ] as const)('refuses a token that was issued 60 s ago by a copy of Age %s as %s', async (age, reason) => {
    const document = JSON.stringify({ keys: [A.jwk] });
    through.server.responses.set('/jwks', (res) => void res.writeHead(200, { age }).end(document));
    const iat = through.time.clock() / 1000 - 60;
    expectRefusal(await through.get(through.token({ key: B, claims: { iat } })), reason, through);
  });
});

it('never verifies a token of one issuer with the key of another that has the same kid', async () => {
  const [keyOne, keyTwo] = [newKey('ES256', 'same'), newKey('ES256', 'same')];
  const [one, two] = [await keyServer(keyOne), opened(await keyServer(keyTwo))];
  const issuers = [one, two].map(({ origin }) => ({ issuer: origin, audience: 'https://api.test' }));
  const through = opened(gateAt(one, { issuers }));
  const signed = (issuer: string, key = keyOne): string => through.token({ key, claims: { iss: issuer } });

  await through.get(signed(one.origin, keyOne)).expect(200);
  const response = await through.get(signed(two.origin, keyTwo)).expect(200);
  expect(response.body.auth.issuer).toBe(two.origin);
  through.reached.length = 0;
  expectRefusal(await through.get(signed(one.origin, keyTwo)), 'bad_signature', through);
  expectRefusal(await through.get(signed(two.origin, keyOne)), 'bad_signature', through);
  expectRefusal(await through.get(signed('https://evil.test', keyOne)), 'wrong_issuer', through);
  const without = through.token({ key: keyOne, claims: { iss: undefined } });
  expectRefusal(await through.get(without), 'wrong_issuer', through);
});
