import type { Reason } from '../../src';
import { gateApp } from '../support/gate-app';
import type { GateApp } from '../support/gate-app';
import { base64url, goodClaims, NOW, signer, token } from '../support/issuer';
import type { TokenParts } from '../support/issuer';
import { testKey } from '../support/keys';
import { expectRefusal, expectNoTokenLeak } from '../support/refusals';
import { NODE_REFUSES_MANY_HEADERS } from '../hostile/support/node-version';
import { rawServer } from '../support/raw-request';
import type { RawServer } from '../support/raw-request';

const [HEADER, PAYLOAD, SIGNATURE] = token().split('.') as [string, string, string];
const CLAIMS = JSON.stringify(goodClaims());
const HEAD = '{"alg":"ES256","typ":"at+jwt","kid":"ES256-1"';
const BOM = '\ufeff';

/** Sets the unused low bits of the last character: the same bytes, spelt differently. */
function notCanonical(part: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return part.slice(0, -1) + alphabet[alphabet.indexOf(part.at(-1) ?? '') + 1];
}

/** A signed token whose header or payload is these bytes. */
const signed = (parts: TokenParts): string => token(parts);

async function refuses(raw: string, reason: Reason): Promise<void> {
  const through = gateApp();
  expectRefusal(await through.get(raw), reason, through);
}

describe('structure: parts and their encoding (RFC 7515 sections 2 and 7.1)', () => {
  it.each([
    ['one part', HEADER],
    ['four parts', `${HEADER}.${PAYLOAD}.${SIGNATURE}.${SIGNATURE}`],
    ['five parts, as a JWE has them', `${HEADER}..${PAYLOAD}.${PAYLOAD}.${SIGNATURE}`],
    ['base64 characters in the signature', `${HEADER}.${PAYLOAD}.+/${SIGNATURE.slice(2)}`],
    ['padding after the signature', `${HEADER}.${PAYLOAD}.${SIGNATURE}==`],
    ['a signature with a character too many', `${HEADER}.${PAYLOAD}.${SIGNATURE}AAA`],
    ['a signature whose spare bits are set', `${HEADER}.${PAYLOAD}.${notCanonical(SIGNATURE)}`],
  ])('refuses %s', (_what, raw) => refuses(raw, 'malformed_token'));

  it('accepts a long token that stays below the bound', async () => {
    await gateApp()
      .get(token({ claims: { filler: 'x'.repeat(9_000) } }))
      .expect(200);
  });

  it.each([
    ['header', 0],
    ['payload', 1],
  ])('refuses a signed %s whose base64url is not canonical', async (_name, position) => {
    // The length leaves spare bits in the part; the signature covers the text as sent.
    const parts = [base64url(`${HEAD}}`), base64url(`${CLAIMS} `.padEnd(CLAIMS.length + 3 - (CLAIMS.length % 3) + 1))];
    parts[position] = notCanonical(parts[position] ?? '');
    const input = parts.join('.');
    const key = testKey();
    const signature = signer(key.alg, key.privateKey)(Buffer.from(input));
    await refuses(`${input}.${signature.toString('base64url')}`, 'malformed_token');
  });
});

describe('structure: header and payload are strict JSON objects (RFC 7515 section 4, RFC 7519 section 4)', () => {
  const documents: readonly [string, string | Buffer][] = [
    ['an array', '["ES256"]'],
    ['broken JSON', '{"alg":'],
    ['a byte order mark', `${BOM}{"alg":"ES256"}`],
    ['a duplicate member', '{"alg":"ES256","alg":"ES256"}'],
  ];
  it.each(documents)('refuses a header that is %s', (_what, rawHeader) =>
    refuses(signed({ rawHeader }), 'malformed_token'),
  );
  it.each(documents)('refuses a signed payload that is %s', (_what, payload) =>
    refuses(signed({ payload }), 'malformed_token'),
  );

  it.each([
    ['duplicate members around good claims', CLAIMS.replace('{', '{"scope":"orders:read",')],
    ['a byte order mark before good claims', `${BOM}${CLAIMS}`],
  ])('refuses a signed payload with %s', (_what, payload) => refuses(signed({ payload }), 'malformed_token'));

  it('keeps unicode claims as they are', async () => {
    const claims = { store: 'Kaffeehaus zur Öse', tag: '☕ 𝄞', ключ: '値' };
    const response = await gateApp().get(token({ claims })).expect(200);
    expect(response.body.auth.claims).toMatchObject(claims);
  });

  it('treats __proto__ in a payload like any other claim', async () => {
    const payload = CLAIMS.replace('{', '{"__proto__":{"admin":true,"scope":"orders:read"},');
    const through = gateApp();
    await through.get(signed({ payload })).expect(200);
    const claims = through.decisions[0]?.auth?.claims ?? {};
    expect(Object.getPrototypeOf(claims)).toBeNull();
    expect(claims['admin']).toBeUndefined();
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
  });

  it.each(['iss', 'exp', 'scope'])('does not read %s from a prototype in the payload', async (name) => {
    const { [name]: hidden, ...rest } = goodClaims();
    const payload = JSON.stringify(rest).replace('{', `{"__proto__":${JSON.stringify({ [name]: hidden })},`);
    const through = gateApp();
    const response = await through.get(signed({ payload }));
    if (name === 'scope') expectRefusal(response, 'insufficient_scope', through, { scopes: ['orders:read'] });
    else expectRefusal(response, 'invalid_claims', through);
  });

  it('survives a payload nested as deeply as a token can be', async () => {
    const payload = CLAIMS.replace('{', `{"deep":${'['.repeat(5_000)}${']'.repeat(5_000)},`);
    const through = gateApp({ routes: (app) => void app.get('/v1/orders', (_req, res) => void res.json('ok')) });
    await through.get(signed({ payload })).expect(200);
  });
});

describe('structure: header members', () => {
  const rows: readonly [string, string, Reason][] = [
    ['no alg', '{"typ":"at+jwt","kid":"ES256-1"}', 'malformed_token'],
    ['alg none', '{"alg":"none","typ":"at+jwt"}', 'algorithm_not_allowed'],
    ['alg constructor', '{"alg":"constructor","typ":"at+jwt"}', 'algorithm_not_allowed'],
    ['alg __proto__', '{"alg":"__proto__","typ":"at+jwt"}', 'algorithm_not_allowed'],
    ['an unknown crit', `${HEAD},"crit":["exp"],"exp":1}`, 'unsupported_critical_header'],
    ['b64 false with crit (RFC 7797)', `${HEAD},"b64":false,"crit":["b64"]}`, 'unsupported_critical_header'],
    ['b64 false without crit', `${HEAD},"b64":false}`, 'unsupported_critical_header'],
    ['a number as kid', '{"alg":"ES256","typ":"at+jwt","kid":1}', 'malformed_token'],
    ['an empty kid', '{"alg":"ES256","typ":"at+jwt","kid":""}', 'unknown_key'],
    ['kid __proto__', '{"alg":"ES256","typ":"at+jwt","kid":"__proto__"}', 'unknown_key'],
    ['kid constructor', '{"alg":"ES256","typ":"at+jwt","kid":"constructor"}', 'unknown_key'],
    ['a number as typ', '{"alg":"ES256","typ":1,"kid":"ES256-1"}', 'malformed_token'],
    ['no typ', '{"alg":"ES256","kid":"ES256-1"}', 'wrong_type'],
  ];
  it.each(rows)('refuses a signed token with %s', (_what, rawHeader, reason) => refuses(signed({ rawHeader }), reason));

  it('refuses alg none with an empty signature and with any', async () => {
    const header = base64url('{"alg":"none","typ":"at+jwt"}');
    await refuses(`${header}.${PAYLOAD}.`, 'malformed_token');
    await refuses(`${header}.${PAYLOAD}.AA`, 'algorithm_not_allowed');
  });

  it('accepts a token without kid when the key set has one key', async () => {
    await gateApp()
      .get(token({ header: { kid: undefined } }))
      .expect(200);
  });

  it('refuses a token without kid when there are several keys', async () => {
    const through = gateApp({ keys: [testKey().jwk, testKey('ES256', 'second').jwk] });
    expectRefusal(await through.get(token({ header: { kid: undefined } })), 'unknown_key', through);
  });
});

describe('structure: types of the registered claims (RFC 7519 section 4.1)', () => {
  const rows: readonly [string, Record<string, unknown>][] = [
    ['an aud array with a number', { aud: ['https://api.test', 1] }],
    ['a number as iss', { iss: 1 }],
    ['a number as sub', { sub: 17 }],
    ['a number as jti', { jti: 1 }],
    ['a string as exp', { exp: String(NOW + 60) }],
    ['a string as nbf', { nbf: '0' }],
    ['a string as iat', { iat: String(NOW) }],
    ['a number as client_id', { client_id: 17 }],
  ];
  it.each(rows)('refuses %s', (_what, claims) => refuses(token({ claims }), 'invalid_claims'));

  it.each(['exp', 'nbf', 'iat'])('refuses %s beyond what a double holds, or NaN in any spelling', async (name) => {
    const { [name]: _left, ...rest } = goodClaims();
    for (const value of ['1e400', '-1e400']) {
      await refuses(signed({ payload: JSON.stringify(rest).replace('{', `{"${name}":${value},`) }), 'invalid_claims');
    }
    for (const value of ['NaN', 'Infinity', '0x10', '01']) {
      await refuses(signed({ payload: JSON.stringify(rest).replace('{', `{"${name}":${value},`) }), 'malformed_token');
    }
    await refuses(signed({ payload: JSON.stringify(rest).replace('{', `{"${name}":"NaN",`) }), 'invalid_claims');
  });
});

const GOOD = token();
const OTHER = token({ claims: { jti: 'another' } });

describe('requests that no HTTP client would send', () => {
  let through: GateApp;
  let server: RawServer;

  beforeEach(async () => {
    through = gateApp();
    server = await rawServer(through.app);
  });
  afterEach(() => server.close());

  it.each([
    ['the same good token twice', `Bearer ${GOOD}`, `Bearer ${GOOD}`],
    ['two good tokens', `Bearer ${GOOD}`, `Bearer ${OTHER}`],
    ['a good token and Basic', `Bearer ${GOOD}`, 'Basic YTpi'],
    ['Basic and a good token', 'Basic YTpi', `Bearer ${GOOD}`],
    ['two times Basic', 'Basic YTpi', 'Basic YTpi'],
    ['an empty one and a good token', '', `Bearer ${GOOD}`],
    ['two empty ones', '', ''],
  ])('refuses two Authorization headers: %s', async (_what, first, second) => {
    const response = await server.send([
      'GET /v1/orders HTTP/1.1',
      `Authorization: ${first}`,
      `aUTHORIZATION: ${second}`,
    ]);
    expectRefusal(response, 'malformed_authorization', through);
  });

  it.each([
    ['997 others', 997],
    ['1,995 others', 1_995],
  ])(
    'are refused with a second Authorization header after %s: Node drops it, or refuses first',
    async (_what, others) => {
      const response = await server.send([
        'GET /v1/orders HTTP/1.1',
        'Host: api.test',
        `Authorization: Bearer ${GOOD}`,
        ...Array<string>(others).fill('a:b'),
        `Authorization: Bearer ${OTHER}`,
      ]);
      if (!NODE_REFUSES_MANY_HEADERS) return expectRefusal(response, 'malformed_authorization', through);
      expect({ status: response.status, text: response.text }).toEqual({ status: 431, text: '' });
      expect({ seen: through.presented, decisions: through.decisions }).toEqual({ seen: [], decisions: [] });
    },
  );

  it('accepts as many headers as Node always keeps', async () => {
    const others = Array<string>(990).fill('a:b');
    const response = await server.send(['GET /v1/orders HTTP/1.1', `Authorization: Bearer ${GOOD}`, ...others]);
    expect(response.status).toBe(200);
  });

  it('refuses an empty Authorization header', async () => {
    const response = await server.send(['GET /v1/orders HTTP/1.1', 'Authorization:']);
    expectRefusal(response, 'malformed_authorization', through);
  });

  it.each([
    ['bytes beyond ASCII', `Bearer \xff\xfe${GOOD}`],
    ['a NUL that was percent-encoded', `Bearer ${GOOD}%00`],
    ['a no-break space between two tokens', `Bearer ${GOOD}\xa0${GOOD}`],
  ])('refuses an Authorization header with %s', async (_what, header) => {
    const response = await server.send(['GET /v1/orders HTTP/1.1', `Authorization: ${header}`]);
    expectRefusal(response, 'malformed_authorization', through);
  });

  it('accepts one good header on the same socket, so the refusals above are not the socket', async () => {
    const response = await server.send(['GET /v1/orders HTTP/1.1', `Authorization: Bearer ${GOOD}`]);
    expect(response.status).toBe(200);
  });

  it('accepts several blanks after the scheme (RFC 9110 section 11.4: 1*SP)', async () => {
    const response = await server.send(['GET /v1/orders HTTP/1.1', `Authorization: Bearer   ${GOOD}`]);
    expect(response.status).toBe(200);
  });

  it.each([
    'HEAD /v1/orders',
    'TRACE /v1/orders',
    'OPTIONS /v1/orders',
    'OPTIONS *',
    'PROPFIND /v1/orders',
    'GET //v1/orders',
    'GET /v1//orders',
    'GET /v1/orders/',
    'GET /V1/Orders',
    'GET /v1%2forders',
    'GET /v1%2Forders',
    'GET /%761/orders',
    'GET /v1/%6frders',
    'GET /v1/orders;a=1',
    'GET /v1;a=1/orders',
    'GET /v1/./orders',
    'GET /x/../v1/orders',
    'GET /v1/orders%00',
    'GET /v1/orders%',
    'GET /v1/orders?',
    'GET /v1/orders#access_token=1',
    'GET http://other.test/v1/orders',
  ])('responds to %s without a token with neither 2xx nor 5xx, and reaches no handler', async (requestLine) => {
    const response = await server.send([`${requestLine} HTTP/1.1`]);
    expect(response.status).toBeGreaterThanOrEqual(400);
    expect(response.status).toBeLessThan(500);
    expect(through.reached).toEqual([]);
    expectNoTokenLeak(response, through);
  });

  it.each(['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'])('ignores %s', async (name) => {
    const response = await server.send(['POST /v1/orders HTTP/1.1', `${name}: OPTIONS`, 'Content-Length: 0']);
    expectRefusal(response, 'missing_token', through);
  });

  it('responds to HEAD without a token with the headers of the refusal and no body', async () => {
    const response = await server.send(['HEAD /v1/orders HTTP/1.1']);
    expect({ status: response.status, text: response.text }).toEqual({ status: 401, text: '' });
    expect(response.headers['www-authenticate']).toBe('Bearer realm="api"');
  });

  it('responds to TRACE with a good token without repeating it', async () => {
    const response = await server.send(['TRACE /v1/orders HTTP/1.1', `Authorization: Bearer ${GOOD}`]);
    expect(response.status).toBe(404);
    expectNoTokenLeak(response, through);
  });
});
