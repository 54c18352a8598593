import { authenticate } from '../../src/index';
import type { Gate } from '../../src/index';
import { startTestIssuer } from '../../src/testing/index';
import type { HttpTestIssuer } from '../../src/testing/index';
import { eventually } from '../support/key-server';
import { guardedApp } from './guarded-app';

let issuer: HttpTestIssuer;

beforeAll(async () => (issuer = await startTestIssuer({ audience: 'https://orders.test' })));
afterAll(() => issuer.close());

async function getJson(path: string): Promise<unknown> {
  return (await fetch(issuer.issuer + path)).json();
}

function askForToken(form: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${issuer.issuer}/connect/token`, { method: 'POST', body: new URLSearchParams(form), headers });
}

describe('the endpoints of a test issuer', () => {
  it.each(['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'])(
    'describe it at %s',
    async (path) => {
      expect(await getJson(path)).toMatchObject({
        issuer: issuer.issuer,
        jwks_uri: `${issuer.issuer}/.well-known/openid-configuration/jwks`,
        token_endpoint: `${issuer.issuer}/connect/token`,
        grant_types_supported: ['client_credentials'],
      });
    },
  );

  it('publish the key that signs', async () => {
    const { fetches } = issuer;
    const jwks = await getJson('/.well-known/openid-configuration/jwks');
    expect(jwks).toEqual({ keys: [expect.objectContaining({ kid: issuer.keyId, alg: 'ES256', use: 'sig' })] });
    expect(issuer.fetches).toBe(fetches + 1);
  });

  it.each([
    ['GET', '/connect/token', 405, 'POST'],
    ['POST', '/generations', 405, 'GET'],
    ['GET', '/nowhere?a=b', 404, null],
    ['GET', '//', 404, null],
  ])('respond to %s %s with %i', async (method, path, status, allow) => {
    const response = await fetch(issuer.issuer + path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([status, allow]);
  });
});

describe('POST /connect/token', () => {
  it('issues a token to any client, in the form or by HTTP Basic', async () => {
    const app = guardedApp(issuer.options);
    const basic = { authorization: `Basic ${Buffer.from('till%201:anything').toString('base64')}` };
    const grant = { grant_type: 'client_credentials', scope: 'orders:read' };
    for (const response of [
      await askForToken({ ...grant, client_id: 'till 1', client_secret: 'anything' }),
      await askForToken(grant, basic),
    ]) {
      const body = (await response.json()) as { access_token: string };
      expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 300, scope: 'orders:read' });
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect((await app.call(body.access_token)).body).toEqual({ caller: 'till 1' });
    }
    await app.gate.close();
  });

  it.each([
    ['a client', { grant_type: 'client_credentials' }, 401, 'invalid_client'],
    ['a grant type', { client_id: 'till' }, 400, 'invalid_request'],
    ['a grant type that it knows', { client_id: 'till', grant_type: 'password' }, 400, 'unsupported_grant_type'],
  ])('asks for %s', async (_what, form, status, error) => {
    const response = await askForToken(form);
    expect([response.status, await response.json()]).toEqual([status, expect.objectContaining({ error })]);
    expect(response.headers.get('www-authenticate')).toBe(status === 401 ? 'Basic realm="token"' : null);
  });
});

describe('GET /generations', () => {
  it('lists what was bumped', async () => {
    const generation = issuer.bump('listed');
    const { changes, mark } = (await getJson('/generations')) as { changes: unknown[]; mark: { complete_ms: number } };
    expect(changes).toContainEqual({ client_id: 'listed', generation });
    expect(mark.complete_ms).toBeGreaterThanOrEqual(generation);
  });

  it('tells a gate elsewhere, which follows the stream until an outage cuts it', async () => {
    const logger = { info() {}, warn: jest.fn(), error() {} };
    const gate = authenticate({ ...issuer.options, generationSource: `${issuer.issuer}/generations`, logger });
    await gate.ready();
    const known = floorsOf(gate);
    issuer.bump('elsewhere');
    await eventually(() => floorsOf(gate) === known + 1);
    expect(logger.warn).not.toHaveBeenCalled();
    issuer.outage('503');
    await eventually(() => logger.warn.mock.calls.length > 0);
    issuer.outage();
    await gate.close();
  });
});

function floorsOf(gate: Gate): number {
  return gate.status().issuers[0]?.generations?.floors ?? 0;
}
