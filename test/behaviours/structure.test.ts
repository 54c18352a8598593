import { gateApp } from '../support/gate-app';
import type { GateApp } from '../support/gate-app';
import { goodClaims, token } from '../support/issuer';
import type { TokenParts } from '../support/issuer';
import { expectRefusal, expectNoTokenLeak } from '../support/refusals';
import { NODE_REFUSES_MANY_HEADERS } from '../hostile/support/node-version';
import { rawServer } from '../support/raw-request';
import type { RawServer } from '../support/raw-request';

const CLAIMS = JSON.stringify(goodClaims());
/** A signed token whose header or payload is these bytes. */
const signed = (parts: TokenParts): string => token(parts);

describe('structure: what a token may hold', () => {
  it('accepts a long token that stays below the bound', async () => {
    await gateApp()
      .get(token({ claims: { filler: 'x'.repeat(9_000) } }))
      .expect(200);
  });

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
