import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createAuthServer } from '@tillgate/cli';
import type { AuthServer } from '@tillgate/cli';
import { connect } from './agent.js';
import { createApp } from './app.js';

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const servers: Server[] = [];
let tokens: AuthServer;
let dataDir: string;
let issuer: string;
let resource: string;

/** Listens, and makes the handler for the URL that it then has. */
async function listen(makeHandler: (origin: string) => Promise<RequestListener>): Promise<string> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.on('request', await makeHandler(origin));
  return origin;
}

before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'tillgate-mcp-'));
  let origin = '';
  issuer = await listen(async (url) => {
    origin = await listen(async (api) => {
      const resource = `${api}/mcp`;
      tokens = await createAuthServer({ issuer: url, audience: resource, dataDir, logger: silent });
      return createApp({ issuer: url, audience: resource, resource, logger: silent });
    });
    return tokens.handler;
  });
  resource = `${origin}/mcp`;
});
after(async () => {
  for (const server of servers) server.close().closeAllConnections();
  await tokens.close();
  await rm(dataDir, { recursive: true });
});

/** A client that is registered for these scopes, and the responses that it has got. */
async function agent(clientId: string, scope: string) {
  const { client_secret: clientSecret } = await tokens.register({ client_id: clientId, description: '', scope });
  const responses: string[] = [];
  const client = await connect(
    new URL(resource),
    { clientId, clientSecret, expectedIssuer: issuer },
    (method, { href, origin }, { status, headers }) => {
      const scope = /scope="[^"]*"/.exec(headers.get('www-authenticate') ?? '')?.[0];
      responses.push(
        [status, method, href.replace(origin, origin === issuer ? 'TOKENS' : 'API'), scope].join(' ').trim(),
      );
    },
  );
  return { client, responses };
}

test('finds the token server from the 401, and gets a further scope when a tool needs it', async () => {
  const { client, responses } = await agent('agent', 'orders:read orders:write payments:refund');
  const discovery = [
    '200 GET API/.well-known/oauth-protected-resource/mcp',
    '200 GET TOKENS/.well-known/oauth-authorization-server',
  ];
  assert.deepEqual(responses.splice(0, 5), [
    '401 POST API/mcp scope="orders:read"',
    ...discovery,
    '200 POST TOKENS/connect/token',
    '200 POST API/mcp',
  ]);
  const listed = await client.callTool({ name: 'list_orders' });
  assert.deepEqual(listed.content, [{ type: 'text', text: 'order-17, for agent' }]);
  responses.length = 0;

  const refunded = await client.callTool({ name: 'refund_order', arguments: { order: 'order-17' } });
  assert.deepEqual(refunded.content, [{ type: 'text', text: 'order-17 is refunded, by agent' }]);
  assert.deepEqual(responses, [
    '403 POST API/mcp scope="orders:write payments:refund"',
    ...discovery,
    '200 POST TOKENS/connect/token',
    '200 POST API/mcp',
  ]);
  await client.close();
});

test('gives up where the token server does not grant the scopes', async () => {
  const { client } = await agent('reader', 'orders:read');
  await assert.rejects(
    client.callTool({ name: 'refund_order', arguments: { order: 'order-17' } }),
    /is not registered with one of the scopes/,
  );
  await client.close();
});

test('requires the scopes of all calls in an array', async () => {
  const { client_secret } = await tokens.register({
    client_id: 'till',
    description: '',
    scope: 'orders:read orders:write',
  });
  const form = {
    grant_type: 'client_credentials',
    client_id: 'till',
    client_secret,
    scope: 'orders:read orders:write',
  };
  const granted = await fetch(`${issuer}/connect/token`, { method: 'POST', body: new URLSearchParams(form) });
  const { access_token } = (await granted.json()) as { access_token: string };
  const call = (name: string) => ({ jsonrpc: '2.0', id: name, method: 'tools/call', params: { name, arguments: {} } });
  const send = (body: object) =>
    fetch(resource, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${access_token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(body),
    });
  const scopesOf = async (body: object) => {
    const response = await send(body);
    const { code, required_scopes } = (await response.json()) as { code: string; required_scopes?: string[] };
    return [response.status, code, required_scopes];
  };
  assert.equal((await send(call('list_orders'))).status, 200);
  const all = ['orders:read', 'orders:write', 'payments:refund'];
  assert.deepEqual(await scopesOf([call('list_orders'), call('refund_order')]), [403, 'insufficient_scope', all]);
  assert.deepEqual(await scopesOf(call('drop_database')), [403, 'claim_refused', undefined]);
});

test('lets an agent in a browser read the challenge', async () => {
  const headers = { origin: 'https://agent.example.com', 'access-control-request-method': 'POST' };
  assert.equal((await fetch(resource, { method: 'OPTIONS', headers })).status, 204);
  const refused = await fetch(resource, { method: 'POST', headers });
  assert.equal(refused.status, 401);
  assert.equal(refused.headers.get('access-control-expose-headers'), 'WWW-Authenticate');
});
