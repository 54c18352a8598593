import { timingSafeEqual } from 'node:crypto';
import type { Express } from 'express';
import request from 'supertest';
import type { Test } from 'supertest';
import type { ClientWithSecret } from '../../src/auth-server';
import { authenticateClient } from '../../src/auth-server/token-request';
import { newSecret } from '../../src/auth-server/client';
import type { ClientRow, State } from '../../src/auth-server/store';
import { rawServer } from '../support/raw-request';
import { basic, closeAll, registerClient, startServer } from './fixtures';
import type { TestServer } from './fixtures';

let server: TestServer;
let client: ClientWithSecret;
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
afterAll(closeAll);

const GRANT = 'grant_type=client_credentials&scope=orders:read';

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
