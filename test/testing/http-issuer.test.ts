import { startTestIssuer } from '../../src/testing/index';
import type { HttpTestIssuer, HttpTestIssuerOptions } from '../../src/testing/index';
import { eventually } from '../support/key-server';
import { guardedApp } from './guarded-app';
import type { GuardedApp } from './guarded-app';
import { authenticate } from '../../src/gate/index';
import type { Gate } from '../../src/gate/index';

let issuer: HttpTestIssuer;

describe('an issuer that listens', () => {
  const scope = 'orders:read';
  const MINUTE_MS = 60_000;
  let app: GuardedApp;

  beforeEach(async () => {
    issuer = await startTestIssuer();
    app = guardedApp(issuer.options);
    await app.gate.ready();
  });

  afterEach(async () => {
    await app.gate.close();
    await issuer.close();
  });

  describe('a gate that is given the options of startTestIssuer()', () => {
    it('discovers the keys, once', async () => {
      expect(await app.outcome(issuer.token({ scope }))).toBe('200');
      expect(await app.outcome(issuer.token({ scope, foreignKey: true }))).toBe('401 bad_signature');
      expect(issuer.fetches).toBe(1);
    });

    it('fetches a new key with the first token of it', async () => {
      const before = issuer.token({ scope });
      const keyId = issuer.rotate();
      expect(issuer.keyId).toBe(keyId);
      expect(await app.outcome(issuer.token({ scope }))).toBe('200');
      expect(await app.outcome(before)).toBe('200');
      expect(issuer.fetches).toBe(2);
    });

    it('refuses a key that was withdrawn once its key set is too old', async () => {
      const before = issuer.token({ scope, lifetimeSeconds: 3_600 });
      expect(await app.outcome(before)).toBe('200');
      issuer.rotate();
      issuer.removeKey();
      expect(await app.outcome(before)).toBe('200');
      issuer.clock.advance(10 * MINUTE_MS);
      expect(await app.outcome(before)).toBe('401 unknown_key');
    });

    it('sees a bump with the very next request', async () => {
      const token = issuer.token({ scope });
      expect(await app.outcome(token)).toBe('200');
      issuer.bump();
      expect(await app.outcome(token)).toBe('401 superseded');
    });
  });

  describe('outage()', () => {
    it.each(['503', 'garbage'] as const)(
      '%s: the last good keys are used for a limited time, then requests get 503',
      async (fault) => {
        issuer.outage(fault);
        issuer.clock.advance(15 * MINUTE_MS);
        expect(await app.outcome(issuer.token({ scope }))).toBe('200');
        issuer.clock.advance(60 * MINUTE_MS);
        expect(await app.outcome(issuer.token({ scope }))).toBe('503 keys_unavailable');
        expect(issuer.fetches).toBe(1);
        issuer.outage();
        issuer.clock.advance(MINUTE_MS);
        expect(await app.outcome(issuer.token({ scope }))).toBe('200');
      },
    );

    it('hang: a clock that moves ends the wait', async () => {
      issuer.outage('hang');
      issuer.clock.advance(71 * MINUTE_MS);
      let outcome = '';
      void app.outcome(issuer.token({ scope })).then((text) => (outcome = text));
      await eventually(() => {
        issuer.clock.advance(1_000);
        return outcome !== '';
      });
      expect(outcome).toBe('503 keys_unavailable');
    });

    it('hang: ends with the outage', async () => {
      issuer.outage('hang');
      const { fetches } = issuer;
      const refused = expect(fetch(`${issuer.issuer}/.well-known/openid-configuration/jwks`)).rejects.toThrow();
      await eventually(() => issuer.fetches > fetches);
      issuer.outage('503');
      await refused;
      expect((await fetch(`${issuer.issuer}/generations`)).status).toBe(503);
    });

    it('breaks every endpoint until it is over', async () => {
      issuer.outage('garbage');
      const broken = await fetch(`${issuer.issuer}/.well-known/openid-configuration`);
      expect([broken.status, await broken.text()]).toEqual([200, '<p>This is not the page you wanted.</p>']);
      issuer.outage();
      expect((await fetch(`${issuer.issuer}/.well-known/openid-configuration`)).status).toBe(200);
    });

    it('refuses a fault that it does not know', () => {
      const message = 'outage(): expected one of 503, hang, garbage, or nothing, got "500"';
      expect(() => issuer.outage('500' as never)).toThrow(new TypeError(message));
    });
  });

  describe('startTestIssuer()', () => {
    it.each<[object, string]>([
      [
        { issuer: 'https://login.test' },
        'startTestIssuer(): unknown option "issuer"; known are port, audience, preset, scopes, algorithm, log, clock',
      ],
      [{ prt: 1 }, 'startTestIssuer(): unknown option "prt"; did you mean "port"?'],
      [{ port: 70_000 }, 'startTestIssuer(): option "port" must be a whole number from 0 to 65535, got 70000'],
    ])('refuses %j', async (options, message) => {
      await expect(startTestIssuer(options as HttpTestIssuerOptions)).rejects.toThrow(new TypeError(message));
    });

    it('says when its port is taken', async () => {
      const port = Number(new URL(issuer.issuer).port);
      await expect(startTestIssuer({ port })).rejects.toThrow('EADDRINUSE');
    });
  });
});

describe('its endpoints', () => {
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
      const { changes, mark } = (await getJson('/generations')) as {
        changes: unknown[];
        mark: { complete_ms: number };
      };
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
});
