import { createPrivateKey } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import jwt from 'jsonwebtoken';
import request from 'supertest';
import type { Test } from 'supertest';
import type { ClientWithSecret } from '../../../src/cli/auth-server';
import { newKey } from '../../support/keys';
import { AUDIENCE, GRANT, ISSUER, basic, closeAll, decode, from, registerClient, startServer } from './fixtures';
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
    const authorization = basic(other.client_id, other.client_secret);
    const form = { token, token_type_hint: 'access_token' };
    const response = await server.form('/connect/introspect', form, { authorization });
    expect(response.status).toBe(200);
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.body).toEqual({ active: true, token_type: 'Bearer', ...decode(token).claims });
  });

  /** A token like the server's own, with these changes. */
  async function signed(key: KeyObject, changes: { readonly header?: object; readonly claims?: object } = {}) {
    const { header, claims } = decode(await server.accessToken(client));
    const options = { algorithm: 'RS256', header: { ...header, alg: 'RS256', ...changes.header } } as const;
    return jwt.sign({ ...claims, ...changes.claims }, key, options);
  }

  describe('says active: false alone', () => {
    const foreign = newKey('RS256').privateKey;
    const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url');
    const patched = (body: object) => () => server.patch('/clients/pos-17', body);

    it.each<[string, (token: string) => string | Promise<string>]>([
      ['no token', () => 'x'],
      ['a token of three empty parts', () => '..'],
      ['a token with another signature', (token) => `${token.slice(0, -10)}AAAAAAAAAA`],
      ['a token of another key', () => signed(foreign)],
      ['a token of an unknown key', () => signed(foreign, { header: { kid: undefined } })],
      ['alg none', (token) => `${none}.${token.split('.')[1]}.`],
    ])('for %s', async (_name, spoil) => {
      const token = await server.accessToken(client);
      expect(await server.introspect(client, await spoil(token))).toEqual({ active: false });
    });

    it.each<[string, () => PromiseLike<unknown>]>([
      ['once it has expired', () => server.time.advance(3_600_000)],
      ['once its client is disabled', patched({ disabled: true })],
      ['after revoke', () => server.post('/clients/pos-17/revoke')],
      ['after delete', () => server.delete('/clients/pos-17')],
      ['after the Description has changed', patched({ description: 'x' })],
    ])('%s', async (_name, happens) => {
      const caller = await registerClient(server, { client_id: 'caller' });
      const token = await server.accessToken(client);
      expect(await server.introspect(caller, token)).toMatchObject({ active: true });
      await happens();
      expect(await server.introspect(caller, token)).toEqual({ active: false });
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

    it('as a token of another type, or with another generation: one from before a restore is not known here', async () => {
      const { keys } = JSON.parse(readFileSync(join(server.dataDir, 'state.json'), 'utf8')) as {
        keys: { signing: { jwk: JsonWebKey } };
      };
      const key = createPrivateKey({ key: keys.signing.jwk, format: 'jwk' });
      expect(await server.introspect(client, await signed(key))).toMatchObject({ active: true });
      const others = [
        { header: { typ: 'JWT' } },
        ...[-1, 1].map((by) => ({ claims: { generation: client.generation + by } })),
      ];
      for (const other of others) {
        expect([other, await server.introspect(client, await signed(key, other))]).toEqual([other, { active: false }]);
      }
    });
  });

  it('keeps a token good up to its last second', async () => {
    const token = await server.accessToken(client);
    await server.time.advance(3_599_999);
    expect(await server.introspect(client, token)).toMatchObject({ active: true });
  });

  it('refuses a caller that does not authenticate, before it looks at the token', async () => {
    for (const response of [
      await server.form('/connect/introspect', { token: 'x' }),
      await server.form('/connect/introspect', {}, { authorization: basic('pos-17', 'x') }),
    ]) {
      expect(response.status).toBe(401);
      expect(response.body).toEqual({ error: 'invalid_client', error_description: 'Client authentication failed.' });
      expect(response.headers['www-authenticate']).toBe('Basic realm="token"');
    }
  });

  it('refuses a request without a token', async () => {
    const { client_id, client_secret } = client;
    const { status, body } = await server.form('/connect/introspect', { client_id, client_secret });
    expect([status, body.error]).toEqual([400, 'invalid_request']);
  });

  it('refuses GET, so that no token stands in an address', async () => {
    const { status, headers } = await server.get('/connect/introspect?token=x');
    expect([status, headers['allow']]).toEqual([405, 'POST']);
  });
});

describe('the limit of token requests', () => {
  let server: TestServer;
  let client: ClientWithSecret;
  beforeEach(async () => {
    server = await startServer({ rateLimit: { limit: 2, windowMs: 60_000 } });
    client = await registerClient(server);
  });

  /** The statuses of requests one after the other. */
  async function statuses<Case>(cases: readonly Case[], send: (one: Case) => Test): Promise<number[]> {
    const all: number[] = [];
    for (const one of cases) all.push((await send(one)).status);
    return all;
  }

  /** A token request as from this address, with a wrong secret. */
  const tokenFrom = (address: string, clientId = 'pos-17') =>
    request(from(server, address))
      .post('/connect/token')
      .type('form')
      .send({ ...GRANT, client_id: clientId, client_secret: 'x' });

  it('counts per client id, good requests and bad ones, and responds as RFC 6749 errors are', async () => {
    const first = await server.token(client);
    expect(first.status).toBe(200);
    expect(first.headers['ratelimit-policy']).toMatch(/^"token"; q=2; w=60/);
    expect(first.headers['ratelimit']).toMatch(/^"token"; r=1; t=\d+/);
    expect(first.headers).not.toHaveProperty('x-ratelimit-limit');
    expect((await server.token(client, { client_secret: 'wrong' })).status).toBe(401);

    const limited = await server.token(client);
    expect(limited.status).toBe(429);
    const error_description = 'No more than 2 token requests per 60 s.';
    expect(limited.body).toEqual({ error: 'temporarily_unavailable', error_description });
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
    expect(limited.headers['cache-control']).toBe('no-store');
    expect((await server.token(await registerClient(server, { client_id: 'kiosk' }))).status).toBe(200);
  });

  it('counts requests without credentials too, all of an address together', async () => {
    const forms = [GRANT, { ...GRANT, client_id: 'pos-17' }, { ...GRANT, client_secret: 'x' }];
    expect(await statuses(forms, (form) => server.form('/connect/token', form))).toEqual([401, 401, 429]);
  });

  it.each(['%zz:secret', 'pos-17:%zz', 'pos-17', ':', 'pos-17:', ':secret'])(
    'reads no id from broken credentials: %s',
    async (text) => {
      const authorization = `Basic ${Buffer.from(text).toString('base64')}`;
      expect((await server.form('/connect/token', GRANT, { authorization })).status).toBe(401);
    },
  );

  it('counts ids by their first 128 characters', async () => {
    const long = 'x'.repeat(128);
    const ids = [`${long}a`, `${long}b`, `${long}c`, `${long.slice(1)}c`];
    expect(await statuses(ids, (id) => tokenFrom('192.0.2.1', id))).toEqual([401, 401, 429, 401]);
  });

  it('counts an id the same in Basic and in the body', async () => {
    const authorization = basic('pos-17', client.client_secret);
    const inHeader = () => server.form('/connect/token', GRANT, { authorization });
    const calls = [inHeader, () => server.token(client), inHeader];
    expect(await statuses(calls, (call) => call())).toEqual([200, 200, 429]);
  });

  it('does not trust X-Forwarded-For', async () => {
    const send = (address: string) => server.token(client).set('X-Forwarded-For', address);
    expect(await statuses(['192.0.2.1', '192.0.2.2', '192.0.2.3'], send)).toEqual([200, 200, 429]);
  });

  it('sends no headers when it is off', async () => {
    const { headers } = await (await server.restart({ rateLimit: false })).token(client);
    expect(headers).not.toHaveProperty('ratelimit');
  });

  it('counts IPv6 callers that rotate inside their /64 together; other networks and IPv4 addresses apart', async () => {
    const sameNetwork = ['2001:db8:0:1::1', '2001:db8:0:1:ffff::2', '2001:db8:0:1:1:2:3:4', '2001:db8:0:1::1'];
    expect(await statuses(sameNetwork, (address) => tokenFrom(address))).toEqual([401, 401, 429, 429]);
    const others = ['2001:db8:1:1::1', '192.0.2.1', '192.0.2.2'];
    expect(await statuses(others, (address) => tokenFrom(address))).toEqual([401, 401, 401]);
  });

  it('takes no client id for an address', async () => {
    const ids = ['', '', '', '192.0.2.1 '];
    expect(await statuses(ids, (id) => tokenFrom('192.0.2.1', id))).toEqual([401, 401, 429, 401]);
  });

  it('has a window that ends after its length, however many requests come', async () => {
    // What express-rate-limit counts by.
    jest.spyOn(Date, 'now').mockImplementation(server.time.clock);
    const send = (stepMs: number) => {
      server.time.step(stepMs);
      return server.token(client);
    };
    expect(await statuses([0, 0, 0, 30_000, 29_999], send)).toEqual([200, 200, 429, 429, 429]);
    expect(await statuses([1, 0, 0], send)).toEqual([200, 200, 429]);
  });

  it.each([
    ['good requests', {}, { 200: 2, 429: 98 }],
    ['wrong secrets', { client_secret: 'wrong' }, { 401: 2, 429: 98 }],
  ])('counts 100 %s that arrive at the same time before it looks at a secret', async (_name, form, expected) => {
    const responses = await Promise.all(Array.from({ length: 100 }, () => server.token(client, form)));
    const counts: Record<number, number> = {};
    for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
    expect(counts).toEqual(expected);
  });
});
