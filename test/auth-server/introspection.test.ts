import { createPrivateKey } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import jwt from 'jsonwebtoken';
import request from 'supertest';
import type { ClientWithSecret } from '../../src/auth-server';
import { newKey } from '../support/keys';
import { AUDIENCE, ISSUER, basic, closeAll, decode, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

let server: TestServer;
let client: ClientWithSecret;

beforeEach(async () => {
  server = await startServer();
  client = await registerClient(server);
});
afterEach(closeAll);

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
    const key = newKey('ES256');
    const claims = {
      iss: ISSUER,
      aud: AUDIENCE,
      client_id: 'pos-17',
      generation: client.generation,
      exp: now() + 60,
      iat: now(),
    };
    return jwt.sign({ ...claims, ...changes }, key.privateKey, {
      algorithm: 'ES256',
      header: { alg: 'ES256', typ: 'at+jwt', ...header },
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
      algorithm: 'ES256',
      header: { ...header, alg: 'ES256', ...changes.header },
    });
  }

  it('as a token of another type', async () => {
    expect(await server.introspect(client, await signed({ header: { typ: 'at+jwt' } }))).toMatchObject({
      active: true,
    });
    expect(await server.introspect(client, await signed({ header: { typ: 'JWT' } }))).toEqual({ active: false });
  });

  it.each([-1, 1])('with a generation that differs by %i: one from before a restore is not known here', async (by) => {
    const { generation } = client;
    expect(await server.introspect(client, await signed({ claims: { generation } }))).toMatchObject({ active: true });
    const other = await signed({ claims: { generation: generation + by } });
    expect(await server.introspect(client, other)).toEqual({ active: false });
  });
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
