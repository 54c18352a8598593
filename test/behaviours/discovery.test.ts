import type { GateAppOptions } from '../support/gate-app';
import { keyServer } from '../support/key-server';
import type { StubResponse, KeyServer } from '../support/key-server';
import { testKey } from '../support/keys';
import { expectRefusal } from '../support/refusals';
import { gateAt, REFRESH_MS, remoteGate } from '../support/remote-gate';

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
