import { NODE_REFUSES_MANY_HEADERS } from '../hostile/support/node-version';
import { gateApp } from '../support/gate-app';
import type { GateApp } from '../support/gate-app';
import { token } from '../support/issuer';
import { rawServer } from '../support/raw-request';
import type { RawServer } from '../support/raw-request';
import { expectNoTokenLeak, expectRefusal } from '../support/refusals';

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
