import { createPublicKey, timingSafeEqual } from 'node:crypto';
import jwt from 'jsonwebtoken';
import request from 'supertest';
import type { Response, Test } from 'supertest';
import type { Express } from 'express';
import type { ClientWithSecret } from '../../../src/cli/auth-server';
import { AUDIENCE, ISSUER, basic, closeAll, decode, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';
import { authenticateClient } from '../../../src/cli/auth-server/token-request';
import { newSecret } from '../../../src/cli/auth-server/client';
import type { ClientRow, State } from '../../../src/cli/auth-server/store';
import { messagesIn } from '../../support/messages';
import { rawServer } from '../../support/raw-request';

afterAll(closeAll);

let server: TestServer;

let client: ClientWithSecret;

/** A good body without credentials. */
const GRANT = 'grant_type=client_credentials&scope=orders:read';
const FORM = 'application/x-www-form-urlencoded';
const encode = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

const send = (body: string, headers: Record<string, string> = {}): Test =>
  request(server.url)
    .post('/connect/token')
    .set({ 'content-type': FORM, ...headers })
    .send(body);

function expectRefusal(response: Response, status: number, error: string, description: string): void {
  expect([response.status, response.body]).toEqual([status, { error, error_description: description }]);
  expect(response.headers).toMatchObject(JSON_NOT_STORED);
  expect(response.headers['www-authenticate']).toBe(status === 401 ? 'Basic realm="token"' : undefined);
  // RFC 6749 section 5.2: %x20-21 / %x23-5B / %x5D-7E
  expect(description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
}

const JSON_NOT_STORED = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  pragma: 'no-cache',
};

describe('the token endpoint', () => {
  beforeAll(async () => {
    server = await startServer();
    client = await registerClient(server);
  });

  const inBody = (): string => `client_id=pos-17&client_secret=${client.client_secret}`;
  const inHeader = (scheme = 'Basic') => ({
    authorization: basic('pos-17', client.client_secret).replace('Basic', scheme),
  });

  describe('a token that is granted', () => {
    it('comes as RFC 6749 section 5.1 says, not to be stored', async () => {
      const response = await server.token(client, { scope: 'orders:write orders:read' });
      expect(response.status).toBe(200);
      expect(response.body).toEqual({
        access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
        token_type: 'Bearer',
        expires_in: 3600,
        scope: 'orders:write orders:read',
      });
      expect(response.headers).toMatchObject(JSON_NOT_STORED);
    });

    it('keeps the form that all client libraries accept: expires_in a number, token_type, and scope', async () => {
      // Four throw on an expires_in that is text (google-oauth-client, RestSharp, OpenIddict.Client, oauth2 for Rust); with
      // none, MSAL.NET and axios-oauth-client request a token per call; without token_type openid-client, oauth4webapi,
      // Nimbus, oauth2 for Rust and MSAL.NET refuse the response.
      const { body } = await server.token(client, { scope: 'orders:read' });
      expect([body.expires_in, body.token_type, body.scope]).toEqual([3600, 'Bearer', 'orders:read']);
    });

    it('is a JWT of RFC 9068 with the generation of its credential, which verifies with the published key', async () => {
      const token = await server.accessToken(client);
      const { header, claims } = decode(token);
      const key = (await server.get('/.well-known/openid-configuration/jwks')).body.keys[0];
      const checks = { algorithms: ['RS256' as const], clockTimestamp: server.time.clock() / 1000 };
      expect(jwt.verify(token, createPublicKey({ key, format: 'jwk' }), checks)).toEqual(claims);
      expect(header).toEqual({ alg: 'RS256', typ: 'at+jwt', kid: key.kid });
      const now = Math.floor(server.time.clock() / 1000);
      expect(claims).toEqual({
        iss: ISSUER,
        aud: AUDIENCE,
        sub: 'pos-17',
        client_id: 'pos-17',
        scope: 'orders:read',
        iat: now,
        exp: now + 3600,
        jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
        generation: client.generation,
      });
    });

    it('never repeats its jti', async () => {
      const [first, second] = [await server.accessToken(client), await server.accessToken(client)];
      expect(decode(first).claims['jti']).not.toBe(decode(second).claims['jti']);
    });

    it('names each scope once', async () => {
      const response = await server.token(client, { scope: 'orders:read orders:read' });
      expect(response.body.scope).toBe('orders:read');
    });

    it.each<[string, () => Test]>([
      ['Basic (section 2.3.1)', () => send(GRANT, inHeader())],
      ['basic in any case (RFC 9110 section 11.1)', () => send(GRANT, inHeader('bAsIc'))],
      ['the body (section 2.3.1)', () => send(`${GRANT}&${inBody()}`)],
      ['Basic with the same client_id in the body', () => send(`${GRANT}&client_id=pos-17`, inHeader())],
      ['a charset parameter', () => send(`${GRANT}&${inBody()}`, { 'content-type': `${FORM};charset=UTF-8` })],
      ['percent encoding anywhere', () => send(`grant%5Ftype=client%5fcredentials&scope=orders%3Aread&${inBody()}`)],
      ['unknown parameters (section 3.2)', () => send(`${GRANT}&${inBody()}&audience=x`)],
      ['several resource parameters (RFC 8707)', () => send(`${GRANT}&${inBody()}&resource=a&resource=b`)],
      ['empty parameters, as if omitted (section 3.2)', () => send(`${GRANT}&${inBody()}&foo=&&`)],
      ['an empty client_secret besides Basic', () => send(`${GRANT}&client_secret=`, inHeader())],
    ])('is granted with %s', async (_name, ask) => {
      const response = await ask();
      expect(response.body.error_description).toBeUndefined();
      expect(response.status).toBe(200);
      expect(response.body.scope).toBe('orders:read');
    });

    it('is granted to an id that has to be form-encoded inside Basic (section 2.3.1)', async () => {
      const odd = await registerClient(server, { client_id: 'shop: 50% +&=/' });
      const encoded = new URLSearchParams({ x: odd.client_id }).toString().slice(2);
      expect(encoded).toBe('shop%3A+50%25+%2B%26%3D%2F');
      const response = await send(GRANT, { authorization: basic(encoded, odd.client_secret) });
      expect(response.status).toBe(200);
      expect(decode(response.body.access_token).claims['client_id']).toBe('shop: 50% +&=/');
    });
  });

  describe('a request that is malformed: 400 invalid_request', () => {
    const NOT_A_FORM = 'The body must be sent as application/x-www-form-urlencoded.';
    const NOT_ENCODED = 'The request body is not properly form-encoded: a percent sign or byte is wrong.';
    const NO_GRANT_TYPE = 'grant_type is missing: send grant_type=client_credentials.';
    const TWICE = 'must not be included more than once.';
    const ONE_PLACE = 'Send the client secret in the Authorization header or in the body, not in both.';
    const ACCESS_TOKEN = messagesIn('From the command')['an old access token at the token endpoint'] as string;
    const OTHER_ID = 'The client_id in the body is not the one of the Authorization header.';
    const IN_URL = 'client_secret must be sent in the body, not in the URL.';
    const UNREADABLE = 'The request body could not be read: check its length and encoding.';
    it.each<[string, string, () => Test]>([
      ['JSON', NOT_A_FORM, () => send('{"grant_type":"client_credentials"}', { 'content-type': 'application/json' })],
      ['no content type and no body', NOT_A_FORM, () => request(server.url).post('/connect/token')],
      ['another content type', NOT_A_FORM, () => send(GRANT, { 'content-type': `${FORM}x` })],
      ['an empty body', NO_GRANT_TYPE, () => send('')],
      ['no grant_type', NO_GRANT_TYPE, () => send(`scope=orders:read&${inBody()}`)],
      ['an empty grant_type', NO_GRANT_TYPE, () => send(`grant_type=&${inBody()}`)],
      ['a grant_type twice', `grant_type ${TWICE}`, () => send(`${GRANT}&grant_type=client_credentials`)],
      ['a scope twice', `scope ${TWICE}`, () => send(`${GRANT}&scope=orders:read&${inBody()}`)],
      ['an unknown parameter twice', `A parameter ${TWICE}`, () => send(`${GRANT}&%22=1&%22=2`)],
      // The parser of Express drops it.
      ['a __proto__ twice', `__proto__ ${TWICE}`, () => send(`${GRANT}&${inBody()}&__proto__=1&__proto__=2`)],
      ['Basic and a secret in the body', ONE_PLACE, () => send(`${GRANT}&${inBody()}`, inHeader())],
      [
        'an old access token and a secret in the body',
        ACCESS_TOKEN,
        () => send(`${GRANT}&${inBody()}`, { authorization: 'Bearer old' }),
      ],
      ['Basic and another client_id in the body', OTHER_ID, () => send(`${GRANT}&client_id=kiosk`, inHeader())],
      ['a broken percent sign', NOT_ENCODED, () => send(`${GRANT}&client_id=pos%zz`)],
      ['percent-encoded bytes that are not UTF-8', NOT_ENCODED, () => send(`${GRANT}&client_id=%ff`)],
      ['a secret in the URL', IN_URL, () => send(GRANT).query({ client_secret: 'x' })],
      ['an unknown Content-Encoding', UNREADABLE, () => send(GRANT, { 'content-encoding': 'zip' })],
    ])('%s', async (_name, description, ask) => {
      expectRefusal(await ask(), 400, 'invalid_request', description);
    });

    it('bytes that are not UTF-8', async () => {
      const response = await fetch(`${server.url}/connect/token`, {
        method: 'POST',
        headers: { 'content-type': FORM },
        body: Uint8Array.from([0x66, 0x3d, 0xff]),
      });
      const refusal = { error: 'invalid_request', error_description: 'The request body is not UTF-8.' };
      expect([response.status, await response.json()]).toEqual([400, refusal]);
    });

    it('more than 16 KiB: 413', async () => {
      const response = await send(`${GRANT}&x=${'a'.repeat(16 * 1024)}`);
      expectRefusal(response, 413, 'invalid_request', 'The request body must not exceed 16 KiB.');
    });

    it.each(['get', 'put', 'delete', 'patch', 'options'] as const)('%s: 405 with Allow', async (method) => {
      const response = await request(server.url)[method]('/connect/token');
      expectRefusal(response, 405, 'invalid_request', 'This endpoint takes POST only.');
      expect(response.headers['allow']).toBe('POST');
    });
  });

  it.each(['password', 'authorization_code', 'refresh_token', 'Client_Credentials', 'client_credentials '])(
    'a grant type that is not there: 400 unsupported_grant_type: %j',
    async (grantType) => {
      const response = await server.token(client, { grant_type: grantType });
      expectRefusal(response, 400, 'unsupported_grant_type', 'The only grant type here is client_credentials.');
    },
  );

  describe('a scope that cannot be granted: 400 invalid_scope, nothing granted', () => {
    const missing = 'scope is missing: ask for one or more of orders:read orders:write.';
    const grammar = 'scope must be scope names separated by single spaces.';
    const unregistered = 'The client is not registered with one of the scopes: it has orders:read orders:write.';
    it.each([
      ['absent', undefined, missing],
      ['empty', '', missing],
      ['blank', '+', grammar],
      ['a blank in front', '+orders:read', grammar],
      ['two blanks', 'orders:read++orders:write', grammar],
      ['a tab', 'orders:read%09orders:write', grammar],
      ['a quote', '%22orders:read%22', grammar],
      ['a backslash', 'orders%5Cread', grammar],
      ['no ASCII', '%C3%A9', grammar],
      ['unknown', 'orders:burn', unregistered],
      ['of somebody else', 'items:read', unregistered],
      ['one of two unregistered', 'orders:read+items:read', unregistered],
      ['in another case', 'Orders:Read', unregistered],
    ])('%s', async (_name, scope, description) => {
      const given = scope === undefined ? '' : `&scope=${scope}`;
      expectRefusal(await send(`grant_type=client_credentials${given}&${inBody()}`), 400, 'invalid_scope', description);
    });
  });
});

describe('client authentication', () => {
  let disabled: ClientWithSecret;
  /** Its credentials are base64 without padding. */
  let till: ClientWithSecret;

  beforeAll(async () => {
    server = await startServer();
    client = await registerClient(server);
    disabled = await registerClient(server, { client_id: 'disabled' });
    till = await registerClient(server, { client_id: 'till' });
    await server.patch('/clients/disabled', { disabled: true });
  });

  const withHeader = (authorization: string): Test => send(GRANT, { authorization });

  /** Good credentials in a header of this length. */
  function padded(length: number): string {
    const credentials = basic('pos-17', client.client_secret);
    return credentials.replace(' ', ' '.repeat(1 + length - credentials.length));
  }

  describe('a client that cannot be authenticated gets the same response for every cause', () => {
    it.each<[string, () => Test]>([
      ['no client at all', () => send(GRANT)],
      ['client_id without a secret', () => send(`${GRANT}&client_id=pos-17`)],
      ['a secret without client_id', () => send(`${GRANT}&client_secret=${client.client_secret}`)],
      ['unknown client in the body', () => send(`${GRANT}&client_id=nobody&client_secret=x`)],
      ['wrong secret in the body', () => send(`${GRANT}&client_id=pos-17&client_secret=x`)],
      ['unknown client in the header', () => withHeader(basic('nobody', 'x'))],
      ['wrong secret in the header', () => withHeader(basic('pos-17', 'x'))],
      ['the secret of another client', () => withHeader(basic('pos-17', disabled.client_secret))],
      ['a secret followed by other text', () => withHeader(basic('pos-17', `${client.client_secret}:x`))],
      ['a disabled client', () => withHeader(basic('disabled', disabled.client_secret))],
      ['the client id in another case', () => withHeader(basic('POS-17', client.client_secret))],
      ['no colon', () => withHeader(encode('pos-17'))],
      ['an empty id', () => withHeader(encode(`:${client.client_secret}`))],
      ['an empty secret', () => withHeader(encode('pos-17:'))],
      ['no base64', () => withHeader('Basic %%%')],
      ['base64 of an impossible length', () => withHeader('Basic abcde')],
      ['Basic alone', () => withHeader('Basic')],
      ['broken form encoding inside', () => withHeader(encode('pos-17:%zz'))],
      ['10 kB of credentials', () => withHeader(basic('pos-17', 'x'.repeat(10_000)))],
      ['a secret with a colon in it', () => withHeader(basic('pos-17', client.client_secret.replace(/^./, '$&:')))],
      ['good credentials in a header of 4,097 characters', () => withHeader(padded(4_097))],
      ['good credentials after another scheme', () => withHeader(`x${basic('pos-17', client.client_secret)}`)],
      ['good credentials and more', () => withHeader(`${basic('till', till.client_secret)} x`)],
      ['base64 with a character too many', () => withHeader(`${basic('till', till.client_secret)}A`)],
      ['another scheme', () => withHeader('Bearer abc')],
      ['__proto__', () => withHeader(basic('__proto__', 'x'))],
    ])('%s', async (_name, ask) => {
      expectRefusal(await ask(), 401, 'invalid_client', 'Client authentication failed.');
    });
  });

  it('accepts good credentials after several blanks, in a header of up to 4,096 characters', async () => {
    expect((await withHeader(padded(4_096))).status).toBe(200);
    expect((await withHeader(basic('till', till.client_secret))).status).toBe(200);
  });

  it('refuses two Authorization headers, whatever is in them', async () => {
    const raw = await rawServer(server.auth.handler as Express);
    const credentials = basic('pos-17', client.client_secret);
    const headers = [`Content-Type: ${FORM}`, `Content-Length: ${GRANT.length}`];
    const twice = Array<string>(2).fill(`Authorization: ${credentials}`);
    const response = await raw.send(['POST /connect/token HTTP/1.1', ...headers, ...twice], GRANT);
    await raw.close();
    expectRefusal(response, 400, 'invalid_request', 'Send no more than one Authorization header.');
  });

  describe('the comparison of secrets', () => {
    const { text, stored } = newSecret(0);
    const row = { clientId: 'known', secrets: [stored], disabled: false } as unknown as ClientRow;
    const state = { clients: new Map([['known', row]]) } as unknown as State;

    it.each([
      ['a good secret', { clientId: 'known', secret: text }, true],
      ['a wrong secret', { clientId: 'known', secret: 'x' }, false],
      ['an unknown client', { clientId: 'nobody', secret: 'x' }, false],
      ['no client', undefined, false],
    ])('does the same work for %s', (_name, credentials, good) => {
      const lengths: number[] = [];
      const compare = (a: Buffer, b: Buffer): boolean => {
        lengths.push(a.length, b.length);
        return timingSafeEqual(a, b);
      };
      const attempt = (): ClientRow => authenticateClient(state, credentials, undefined, compare);
      if (good) expect(attempt()).toBe(row);
      else expect(attempt).toThrow('Client authentication failed.');
      expect(lengths).toEqual([32, 32, 32, 32]);
    });

    it('takes no digest of zeros for a secret', () => {
      expect(() => authenticateClient(state, { clientId: 'nobody', secret: '' }, undefined, () => true)).toThrow();
      const bare = { clients: new Map([['bare', { ...row, secrets: [] }]]) } as unknown as State;
      expect(() => authenticateClient(bare, { clientId: 'bare', secret: '' }, undefined, () => true)).toThrow();
    });
  });
});
