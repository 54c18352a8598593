import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import express from 'express';
import { authenticate, requireScope } from '../../../src';
import type { Gate } from '../../../src';
import { recordingLogger } from '../../support/log';
import { expectRefused, guardedApi } from '../interop/guarded-api';
import { startScript } from '../setup/script';
import type { Script } from '../setup/script';
import { missingForKeycloak, startKeycloak } from './keycloak-server';
import type { KeycloakServer } from './keycloak-server';

const AUDIENCE = 'https://api.example.com';
const CLIENT = join(__dirname, '../interop/clients/openid-client-dpop.mjs');
const missing = missingForKeycloak();
if (missing !== undefined) console.warn(missing);

let keycloak: KeycloakServer;
let origin: string;
let server: Server;
let gate: Gate;
let till: Script<object>;

/** Makes a client of Keycloak with these attributes, and gets a token for it with openid-client. */
async function tokenOf(clientId: string, attributes: Record<string, string>): Promise<string> {
  const body = { clientId, secret: `${clientId}-secret`, serviceAccountsEnabled: true, attributes };
  const scopes = { defaultClientScopes: ['commerce-api'], optionalClientScopes: ['orders:read'] };
  await keycloak.admin('/clients', 'POST', { ...body, ...scopes });
  await till.ask({ discover: { issuer: keycloak.issuer, clientId, secret: body.secret } });
  const { access_token } = await till.ask<{ access_token: string }>({ token: { scope: 'orders:read' } });
  return access_token;
}

/** `typ` of header and payload, and the members of `cnf`. */
function shapeOf(token: string): unknown {
  const [header, claims] = token
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, object>);
  return [header?.['typ'], claims?.['typ'], Object.keys(claims?.['cnf'] ?? {})];
}

(missing === undefined ? describe : describe.skip)('Keycloak 26.4, tokens bound by DPoP', () => {
  beforeAll(async () => {
    [keycloak, till] = await Promise.all([startKeycloak(), startScript<object>(CLIENT)]);
    const app = express();
    server = app.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    gate = authenticate({
      preset: 'keycloak',
      issuer: keycloak.issuer,
      audience: AUDIENCE,
      logger: recordingLogger(),
      dpop: { baseUrl: origin, required: true },
    });
    app.use(gate);
    app.get('/orders', requireScope('orders:read'), (req, res) => void res.json(req.auth));
    await gate.ready();
  }, 300_000);

  afterAll(async () => {
    server?.close();
    await gate?.close();
    await Promise.all([till?.stop(), keycloak?.stop()]);
  });

  it.each([
    ['the header of a JWT', 'JWT', {}],
    ['the header of RFC 9068', 'at+jwt', { 'access.token.header.type.rfc9068': 'true' }],
  ])('are accepted with their proofs, with %s', async (_what, typ, attributes) => {
    const token = await tokenOf(`till-${typ}`, { 'dpop.bound.access.tokens': 'true', ...attributes });
    expect(shapeOf(token)).toEqual([typ, 'DPoP', ['jkt']]);
    const call = { url: `${origin}/orders`, accessToken: token };
    for (let use = 0; use < 3; use++) expect(await till.ask({ call })).toEqual({ status: 200 });
    const asBearer = await fetch(call.url, { headers: { authorization: `Bearer ${token}` } });
    expect([asBearer.status, await asBearer.json()]).toMatchObject([401, { code: 'sender_constrained' }]);
  });

  it('are refused by a gate that checks no proofs', async () => {
    const api = await guardedApi(keycloak.issuer, { preset: 'keycloak', audience: AUDIENCE });
    const token = await tokenOf('till-unchecked', { 'dpop.bound.access.tokens': 'true' });
    expectRefused(await api.get('/orders', token), 'sender_constrained');
    await api.close();
  });
});
