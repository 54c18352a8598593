import { createPrivateKey } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createServer } from 'node:http';
import jwt from 'jsonwebtoken';
import request from 'supertest';
import type { ClientWithSecret } from '../../../src/cli/auth-server';
import { newKey } from '../../support/keys';
import { AUDIENCE, ISSUER, basic, closeAll, decode, registerClient, startServer, countByTimeOf } from './fixtures';
import type { TestServer } from './fixtures';

afterEach(closeAll);

describe('introspection', () => {
  let server: TestServer;
  let client: ClientWithSecret;

  beforeEach(async () => {
    server = await startServer();
    client = await registerClient(server);
  });

  it('describes a good token (RFC 7662 section 2.2), to any client that authenticates', async () => {
    const other = await registerClient(server, { client_id: 'kiosk' });
    const token = await server.accessToken(client);
    const response = await request(server.url)
      .post('/connect/introspect')
      .set('Authorization', basic(other.client_id, other.client_secret))
      .type('form')
      .send({ token, token_type_hint: 'access_token' });
    expect(response.status).toBe(200);
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.body).toEqual({ active: true, token_type: 'Bearer', ...decode(token).claims });
  });

  describe('says active: false alone', () => {
    const now = (): number => server.time.clock() / 1000;
    const forged = (changes: object = {}, header: object = {}): string => {
      const key = newKey('RS256');
      const claims = {
        iss: ISSUER,
        aud: AUDIENCE,
        client_id: 'pos-17',
        generation: client.generation,
        exp: now() + 60,
        iat: now(),
      };
      return jwt.sign({ ...claims, ...changes }, key.privateKey, {
        algorithm: 'RS256',
        header: { alg: 'RS256', typ: 'at+jwt', ...header },
      });
    };
    it.each<[string, (token: string) => string | Promise<string>]>([
      ['for no token', () => 'x'],
      ['for a token of three empty parts', () => '..'],
      ['for a token with another signature', (token) => `${token.slice(0, -10)}AAAAAAAAAA`],
      ['for a token of another key', (token) => forged({}, { kid: decode(token).header['kid'] })],
      ['for a token of an unknown key', () => forged()],
      [
        'for alg none',
        (token) => `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${token.split('.')[1]}.`,
      ],
      ['once it has expired', async (token) => (await server.time.advance(3_600_000), token)],
      [
        'once its client is disabled',
        async (token) => (await server.patch('/clients/pos-17', { disabled: true }), token),
      ],
      ['after revoke', async (token) => (await server.post('/clients/pos-17/revoke'), token)],
      ['after delete', async (token) => (await server.delete('/clients/pos-17'), token)],
      [
        'after the Description has changed',
        async (token) => (await server.patch('/clients/pos-17', { description: 'x' }), token),
      ],
    ])('%s', async (_name, spoil) => {
      const caller = await registerClient(server, { client_id: 'caller' });
      const token = await server.accessToken(client);
      expect(await server.introspect(caller, token)).toMatchObject({ active: true });
      expect(await server.introspect(caller, await spoil(token))).toEqual({ active: false });
    });
  });

  describe('says active: false about what its own key has signed', () => {
    it.each([
      ['for another audience', { audience: 'http://other.test' }],
      ['as another issuer', { issuer: 'http://other-login.test' }],
    ])('%s', async (_what, changes) => {
      const token = await server.accessToken(client);
      const other = await server.restart(changes);
      // The same key signs: what the other one issued differs in this claim alone.
      const { claims, header } = decode(await other.accessToken(client));
      expect([header['kid'], claims['generation']]).toEqual([decode(token).header['kid'], client.generation]);
      expect(await other.introspect(client, token)).toEqual({ active: false });
      expect(await other.introspect(client, await other.accessToken(client))).toMatchObject({ active: true });
      const same = await other.restart({ audience: AUDIENCE, issuer: ISSUER });
      expect(await same.introspect(client, token)).toMatchObject({ active: true });
    });

    /** A token like the server's own, with these changes. */
    async function signed(changes: { readonly header?: object; readonly claims?: object }): Promise<string> {
      const state = JSON.parse(readFileSync(join(server.dataDir, 'state.json'), 'utf8')) as {
        keys: { signing: { jwk: JsonWebKey } };
      };
      const key = createPrivateKey({ key: state.keys.signing.jwk, format: 'jwk' });
      const { header, claims } = decode(await server.accessToken(client));
      return jwt.sign({ ...claims, ...changes.claims }, key, {
        algorithm: 'RS256',
        header: { ...header, alg: 'RS256', ...changes.header },
      });
    }

    it('as a token of another type', async () => {
      expect(await server.introspect(client, await signed({ header: { typ: 'at+jwt' } }))).toMatchObject({
        active: true,
      });
      expect(await server.introspect(client, await signed({ header: { typ: 'JWT' } }))).toEqual({ active: false });
    });

    it.each([-1, 1])(
      'with a generation that differs by %i: one from before a restore is not known here',
      async (by) => {
        const { generation } = client;
        expect(await server.introspect(client, await signed({ claims: { generation } }))).toMatchObject({
          active: true,
        });
        const other = await signed({ claims: { generation: generation + by } });
        expect(await server.introspect(client, other)).toEqual({ active: false });
      },
    );
  });

  it('keeps a token good up to its last second', async () => {
    const token = await server.accessToken(client);
    await server.time.advance(3_599_999);
    expect(await server.introspect(client, token)).toMatchObject({ active: true });
  });

  describe('refuses', () => {
    const send = (form: object, headers: Record<string, string> = {}) =>
      request(server.url).post('/connect/introspect').type('form').set(headers).send(form);

    it('a caller that does not authenticate, before it looks at the token', async () => {
      for (const response of [await send({ token: 'x' }), await send({}, { authorization: basic('pos-17', 'x') })]) {
        expect(response.status).toBe(401);
        expect(response.body).toEqual({ error: 'invalid_client', error_description: 'Client authentication failed.' });
        expect(response.headers['www-authenticate']).toBe('Basic realm="token"');
      }
    });

    it('a request without a token', async () => {
      const { client_id, client_secret } = client;
      const response = await send({ client_id, client_secret });
      expect(response.status).toBe(400);
      expect(response.body.error).toBe('invalid_request');
    });

    it('GET, so that no token stands in an address', async () => {
      const response = await server.get('/connect/introspect?token=x');
      expect(response.status).toBe(405);
      expect(response.headers['allow']).toBe('POST');
    });
  });
});

describe('rate limits', () => {
  const rateLimit = { limit: 2, windowMs: 60_000 };

  it('limits per client id, good requests and bad ones, and says so as RFC 6749 errors are', async () => {
    const server = await startServer({ rateLimit });
    const client = await registerClient(server);
    const other = await registerClient(server, { client_id: 'kiosk' });
    const first = await server.token(client);
    expect(first.status).toBe(200);
    expect(first.headers['ratelimit-policy']).toMatch(/^"token"; q=2; w=60/);
    expect(first.headers['ratelimit']).toMatch(/^"token"; r=1; t=\d+/);
    expect(first.headers).not.toHaveProperty('x-ratelimit-limit');
    expect((await server.token(client, { client_secret: 'wrong' })).status).toBe(401);

    const limited = await server.token(client);
    expect(limited.status).toBe(429);
    expect(limited.body).toEqual({
      error: 'temporarily_unavailable',
      error_description: 'No more than 2 token requests per 60 s.',
    });
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
    expect(limited.headers['cache-control']).toBe('no-store');
    expect((await server.token(other)).status).toBe(200);
  });

  it('counts requests without credentials too, all of an address together', async () => {
    const server = await startServer({ rateLimit });
    const send = (form: object) => server.post('/connect/token').type('form').send(form);
    const grant = { grant_type: 'client_credentials', scope: 'orders:read' };
    const statuses = [];
    for (const form of [grant, { ...grant, client_id: 'pos-17' }, { ...grant, client_secret: 'x' }]) {
      statuses.push((await send(form)).status);
    }
    expect(statuses).toEqual([401, 401, 429]);
    const broken = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    const other = await startServer({ rateLimit: { limit: 9, windowMs: 60_000 } });
    for (const text of ['%zz:secret', 'pos-17:%zz', 'pos-17', ':', 'pos-17:', ':secret']) {
      const test = other.post('/connect/token').type('form').send(grant);
      expect((await test.set('Authorization', broken(text))).status).toBe(401);
    }
  });

  it('counts ids by their first 128 characters', async () => {
    const server = await startServer({ rateLimit });
    const from = (id: string) => tokenFrom(server, '192.0.2.1', id);
    const long = 'x'.repeat(128);
    expect([await from(`${long}a`), await from(`${long}b`), await from(`${long}c`)]).toEqual([401, 401, 429]);
    expect(await from(`${long.slice(1)}c`)).toBe(401);
  });

  it('counts an id the same in Basic and in the body', async () => {
    const server = await startServer({ rateLimit });
    const client = await registerClient(server);
    const form = 'grant_type=client_credentials&scope=orders:read';
    const credentials = basic('pos-17', client.client_secret);
    const send = () => server.post('/connect/token').type('form').send(form).set('Authorization', credentials);
    expect((await send()).status).toBe(200);
    expect((await server.token(client)).status).toBe(200);
    expect((await send()).status).toBe(429);
  });

  it('does not trust X-Forwarded-For', async () => {
    const server = await startServer({ rateLimit });
    const client = await registerClient(server);
    const statuses: number[] = [];
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) {
      statuses.push((await server.token(client).set('X-Forwarded-For', address)).status);
    }
    expect(statuses).toEqual([200, 200, 429]);
  });

  it('sends no headers when it is off', async () => {
    const server = await startServer({ rateLimit: false });
    const client = await registerClient(server);
    const { headers } = await server.token(client);
    expect(headers).not.toHaveProperty('ratelimit');
  });

  /** Sends a token request as from this address. */
  async function tokenFrom(server: TestServer, remoteAddress: string, clientId = 'pos-17'): Promise<number> {
    const seenFrom = createServer((req, res) => {
      Object.defineProperty(req.socket, 'remoteAddress', { value: remoteAddress });
      server.auth.handler(req, res);
    });
    const form = { grant_type: 'client_credentials', scope: 'orders:read', client_id: clientId, client_secret: 'x' };
    return (await request(seenFrom).post('/connect/token').type('form').send(form)).status;
  }

  it('IPv6 callers that rotate inside their /64 share a limit; other networks and IPv4 addresses do not', async () => {
    const server = await startServer({ rateLimit });
    const from = (...addresses: string[]) => Promise.all(addresses.map((address) => tokenFrom(server, address)));
    expect(await from('2001:db8:0:1::1', '2001:db8:0:1:ffff::2')).toEqual([401, 401]);
    expect(await from('2001:db8:0:1:1:2:3:4', '2001:db8:0:1::1')).toEqual([429, 429]);
    expect(await from('2001:db8:1:1::1', '192.0.2.1', '192.0.2.2')).toEqual([401, 401, 401]);
  });

  it('an address cannot be impersonated by a client id', async () => {
    const server = await startServer({ rateLimit });
    for (let n = 0; n < 3; n++) await tokenFrom(server, '192.0.2.1', '');
    expect(await tokenFrom(server, '192.0.2.1', '192.0.2.1 ')).toBe(401);
  });

  it('a window ends after its length, however many requests come', async () => {
    const server = await startServer({ rateLimit });
    countByTimeOf(server);
    const client = await registerClient(server);
    const statuses = async (count: number): Promise<number[]> => {
      const all: number[] = [];
      for (let n = 0; n < count; n++) all.push((await server.token(client)).status);
      return all;
    };
    expect(await statuses(3)).toEqual([200, 200, 429]);
    server.time.step(30_000);
    expect(await statuses(1)).toEqual([429]);
    server.time.step(29_999);
    expect(await statuses(1)).toEqual([429]);
    server.time.step(1);
    expect(await statuses(3)).toEqual([200, 200, 429]);
  });

  it.each([
    ['good requests', 'right', { 200: 2, 429: 98 }],
    ['wrong secrets', 'wrong', { 401: 2, 429: 98 }],
  ])('counts 100 %s that arrive at the same time before it looks at a secret', async (_name, secret, expected) => {
    const server = await startServer({ rateLimit });
    const client = await registerClient(server);
    const form = secret === 'right' ? {} : { client_secret: secret };
    const responses = await Promise.all(Array.from({ length: 100 }, () => server.token(client, form)));
    const counts: Record<number, number> = {};
    for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
    expect(counts).toEqual(expected);
  });
});
