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
import { rawServer } from '../../support/raw-request';

afterAll(closeAll);

let server: TestServer;

let client: ClientWithSecret;

/** A good body without credentials. */
const GRANT = 'grant_type=client_credentials&scope=orders:read';

describe('the token endpoint', () => {
  beforeAll(async () => {
    server = await startServer();
    client = await registerClient(server);
  });

  function send(body: string, headers: Record<string, string> = {}): Test {
    return request(server.url)
      .post('/connect/token')
      .set({ 'content-type': 'application/x-www-form-urlencoded', ...headers })
      .send(body);
  }
  const inBody = (): string => `client_id=pos-17&client_secret=${client.client_secret}`;
  const inHeader = (): Record<string, string> => ({ authorization: basic('pos-17', client.client_secret) });

  function expectRefusal(response: Response, status: number, error: string, description: string): void {
    expect({ status: response.status, body: response.body }).toEqual({
      status,
      body: { error, error_description: description },
    });
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.headers['pragma']).toBe('no-cache');
    expect(response.headers['www-authenticate']).toBe(status === 401 ? 'Basic realm="token"' : undefined);
    // RFC 6749 section 5.2: %x20-21 / %x23-5B / %x5D-7E
    expect(description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
  }

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
      expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
      expect(response.headers['cache-control']).toBe('no-store');
      expect(response.headers['pragma']).toBe('no-cache');
    });

    it('is a JWT of RFC 9068 with the generation of its credential', async () => {
      const { header, claims } = decode(await server.accessToken(client));
      const key = (await server.get('/.well-known/openid-configuration/jwks')).body.keys[0];
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

    it('verifies with the published key, and never repeats its jti', async () => {
      const [first, second] = [await server.accessToken(client), await server.accessToken(client)];
      const jwk = (await server.get('/.well-known/openid-configuration/jwks')).body.keys[0];
      const key = createPublicKey({ key: jwk, format: 'jwk' });
      const clockTimestamp = server.time.clock() / 1000;
      expect(() => jwt.verify(first, key, { algorithms: ['RS256'], clockTimestamp })).not.toThrow();
      expect(decode(first).claims['jti']).not.toBe(decode(second).claims['jti']);
    });

    it('names each scope once', async () => {
      const response = await server.token(client, { scope: 'orders:read orders:read' });
      expect(response.body.scope).toBe('orders:read');
    });

    it.each<[string, () => Test]>([
      ['Basic (section 2.3.1)', () => send(GRANT, inHeader())],
      [
        'basic in any case (RFC 9110 section 11.1)',
        () => send(GRANT, { authorization: inHeader()['authorization']!.replace('Basic', 'bAsIc') }),
      ],
      ['the body (section 2.3.1)', () => send(`${GRANT}&${inBody()}`)],
      ['Basic with the same client_id in the body', () => send(`${GRANT}&client_id=pos-17`, inHeader())],
      [
        'a charset parameter',
        () => send(`${GRANT}&${inBody()}`, { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' }),
      ],
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

  const NOT_A_FORM = 'The body must be sent as application/x-www-form-urlencoded.';
  const NOT_ENCODED = 'The request body is not properly form-encoded: a percent sign or byte is wrong.';

  describe('a request that is malformed: 400 invalid_request', () => {
    it.each<[string, string, () => Test]>([
      [
        'JSON',
        NOT_A_FORM,
        () => send(JSON.stringify({ grant_type: 'client_credentials' }), { 'content-type': 'application/json' }),
      ],
      ['no content type and no body', NOT_A_FORM, () => request(server.url).post('/connect/token')],
      ['another content type', NOT_A_FORM, () => send(GRANT, { 'content-type': 'application/x-www-form-urlencodedx' })],
      ['an empty body', 'grant_type is missing: send grant_type=client_credentials.', () => send('')],
      [
        'no grant_type',
        'grant_type is missing: send grant_type=client_credentials.',
        () => send(`scope=orders:read&${inBody()}`),
      ],
      [
        'an empty grant_type',
        'grant_type is missing: send grant_type=client_credentials.',
        () => send(`grant_type=&${inBody()}`),
      ],
      [
        'a grant_type twice',
        'grant_type must not be included more than once.',
        () => send(`${GRANT}&grant_type=client_credentials`),
      ],
      [
        'a scope twice',
        'scope must not be included more than once.',
        () => send(`${GRANT}&scope=orders:read&${inBody()}`),
      ],
      [
        'an unknown parameter twice',
        'A parameter must not be included more than once.',
        () => send(`${GRANT}&%22=1&%22=2`),
      ],
      [
        'a __proto__ twice, which the parser of Express drops',
        '__proto__ must not be included more than once.',
        () => send(`${GRANT}&${inBody()}&__proto__=1&__proto__=2`),
      ],
      [
        'Basic and a secret in the body',
        'Send the client secret in the Authorization header or in the body, not in both.',
        () => send(`${GRANT}&${inBody()}`, inHeader()),
      ],
      [
        'Basic and another client_id in the body',
        'The client_id in the body is not the one of the Authorization header.',
        () => send(`${GRANT}&client_id=kiosk`, inHeader()),
      ],
      ['a broken percent sign', NOT_ENCODED, () => send(`${GRANT}&client_id=pos%zz`)],
      ['percent-encoded bytes that are not UTF-8', NOT_ENCODED, () => send(`${GRANT}&client_id=%ff`)],
      [
        'a secret in the URL',
        'client_secret must be sent in the body, not in the URL.',
        () => send(GRANT).query({ client_secret: 'x' }),
      ],
      [
        'an unknown Content-Encoding',
        'The request body could not be read: check its length and encoding.',
        () => send(GRANT, { 'content-encoding': 'zip' }),
      ],
    ])('%s', async (_name, description, ask) => {
      expectRefusal(await ask(), 400, 'invalid_request', description);
    });

    it('bytes that are not UTF-8', async () => {
      const response = await fetch(`${server.url}/connect/token`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: Uint8Array.from([0x66, 0x3d, 0xff]),
      });
      expect(response.status).toBe(400);
      expect(await response.json()).toEqual({
        error: 'invalid_request',
        error_description: 'The request body is not UTF-8.',
      });
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

  describe('a grant type that is not there: 400 unsupported_grant_type', () => {
    it.each(['password', 'authorization_code', 'refresh_token', 'Client_Credentials', 'client_credentials '])(
      '%j',
      async (grantType) => {
        const response = await server.token(client, { grant_type: grantType });
        expectRefusal(response, 400, 'unsupported_grant_type', 'The only grant type here is client_credentials.');
      },
    );
  });

  describe('a scope that cannot be granted: 400 invalid_scope, nothing granted', () => {
    const missing = 'scope is missing: ask for one or more of orders:read orders:write.';
    const grammar = 'scope must be scope names separated by single spaces.';
    const unregistered = 'The client is not registered with one of the scopes: it has orders:read orders:write.';
    it.each([
      ['absent', `grant_type=client_credentials`, missing],
      ['empty', 'grant_type=client_credentials&scope=', missing],
      ['blank', 'grant_type=client_credentials&scope=+', grammar],
      ['a blank in front', 'grant_type=client_credentials&scope=+orders:read', grammar],
      ['two blanks', 'grant_type=client_credentials&scope=orders:read++orders:write', grammar],
      ['a tab', 'grant_type=client_credentials&scope=orders:read%09orders:write', grammar],
      ['a quote', 'grant_type=client_credentials&scope=%22orders:read%22', grammar],
      ['a backslash', 'grant_type=client_credentials&scope=orders%5Cread', grammar],
      ['no ASCII', 'grant_type=client_credentials&scope=%C3%A9', grammar],
      ['unknown', 'grant_type=client_credentials&scope=orders:burn', unregistered],
      ['of somebody else', 'grant_type=client_credentials&scope=items:read', unregistered],
      ['one of two unregistered', 'grant_type=client_credentials&scope=orders:read+items:read', unregistered],
      ['in another case', 'grant_type=client_credentials&scope=Orders:Read', unregistered],
    ])('%s', async (_name, body, description) => {
      expectRefusal(await send(`${body}&${inBody()}`), 400, 'invalid_scope', description);
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

  function send(body: string, authorization?: string): Test {
    const test = request(server.url).post('/connect/token').type('form').send(body);
    return authorization === undefined ? test : test.set('Authorization', authorization);
  }

  /** Good credentials in a header of this length. */
  function padded(length: number): string {
    const credentials = basic('pos-17', client.client_secret);
    return credentials.replace(' ', ' '.repeat(1 + length - credentials.length));
  }

  const encode = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

  describe('a client that cannot be authenticated gets the same response for every cause', () => {
    it.each<[string, () => Test]>([
      ['no client at all', () => send(GRANT)],
      ['client_id without a secret', () => send(`${GRANT}&client_id=pos-17`)],
      ['a secret without client_id', () => send(`${GRANT}&client_secret=${client.client_secret}`)],
      ['unknown client in the body', () => send(`${GRANT}&client_id=nobody&client_secret=x`)],
      ['wrong secret in the body', () => send(`${GRANT}&client_id=pos-17&client_secret=x`)],
      ['unknown client in the header', () => send(GRANT, basic('nobody', 'x'))],
      ['wrong secret in the header', () => send(GRANT, basic('pos-17', 'x'))],
      ['the secret of another client', () => send(GRANT, basic('pos-17', disabled.client_secret))],
      ['a secret followed by other text', () => send(GRANT, basic('pos-17', `${client.client_secret}:x`))],
      ['a disabled client', () => send(GRANT, basic('disabled', disabled.client_secret))],
      ['the client id in another case', () => send(GRANT, basic('POS-17', client.client_secret))],
      ['no colon', () => send(GRANT, encode('pos-17'))],
      ['an empty id', () => send(GRANT, encode(`:${client.client_secret}`))],
      ['an empty secret', () => send(GRANT, encode('pos-17:'))],
      ['no base64', () => send(GRANT, 'Basic %%%')],
      ['base64 of an impossible length', () => send(GRANT, 'Basic abcde')],
      ['Basic alone', () => send(GRANT, 'Basic')],
      ['broken form encoding inside', () => send(GRANT, encode('pos-17:%zz'))],
      ['10 kB of credentials', () => send(GRANT, basic('pos-17', 'x'.repeat(10_000)))],
      ['a secret with a colon in it', () => send(GRANT, basic('pos-17', client.client_secret.replace(/^./, '$&:')))],
      ['good credentials in a header of 4,097 characters', () => send(GRANT, padded(4_097))],
      ['good credentials after another scheme', () => send(GRANT, `x${basic('pos-17', client.client_secret)}`)],
      ['good credentials and more', () => send(GRANT, `${basic('till', till.client_secret)} x`)],
      ['base64 with a character too many', () => send(GRANT, `${basic('till', till.client_secret)}A`)],
      ['another scheme', () => send(GRANT, 'Bearer abc')],
      ['__proto__', () => send(GRANT, basic('__proto__', 'x'))],
    ])('%s', async (_name, ask) => {
      const response = await ask();
      expect({ status: response.status, body: response.body }).toEqual({
        status: 401,
        body: { error: 'invalid_client', error_description: 'Client authentication failed.' },
      });
      expect(response.headers['www-authenticate']).toBe('Basic realm="token"');
      expect(response.headers['cache-control']).toBe('no-store');
    });
  });

  it('accepts good credentials after several blanks, in a header of up to 4,096 characters', async () => {
    expect((await send(GRANT, padded(4_096))).status).toBe(200);
    expect((await send(GRANT, basic('till', till.client_secret))).status).toBe(200);
  });

  it('refuses two Authorization headers, whatever is in them', async () => {
    const raw = await rawServer(server.auth.handler as Express);
    const credentials = basic('pos-17', client.client_secret);
    const response = await raw.send(
      [
        'POST /connect/token HTTP/1.1',
        'Content-Type: application/x-www-form-urlencoded',
        `Content-Length: ${GRANT.length}`,
        `Authorization: ${credentials}`,
        `Authorization: ${credentials}`,
      ],
      GRANT,
    );
    await raw.close();
    expect(response.status).toBe(400);
    expect(response.body).toEqual({
      error: 'invalid_request',
      error_description: 'Send no more than one Authorization header.',
    });
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
      const attempt = (): ClientRow => authenticateClient(state, credentials, compare);
      if (good) expect(attempt()).toBe(row);
      else expect(attempt).toThrow('Client authentication failed.');
      expect(lengths).toEqual([32, 32, 32, 32]);
    });

    it('takes no digest of zeros for a secret', () => {
      expect(() => authenticateClient(state, { clientId: 'nobody', secret: '' }, () => true)).toThrow();
      const bare = { clients: new Map([['bare', { ...row, secrets: [] }]]) } as unknown as State;
      expect(() => authenticateClient(bare, { clientId: 'bare', secret: '' }, () => true)).toThrow();
    });
  });
});
