import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import express from 'express';
import { authenticate, requireScope } from '../../../src/gate';
import { dpop } from '../../../src/gate/possession';
import type { Gate } from '../../../src/gate';
import { cliScene } from '../../cli/harness';
import { recordingLogger } from '../../support/log';
import { expectRefused, guardedApi } from '../interop/guarded-api';
import { startScript } from '../setup/script';
import type { Script } from '../setup/script';
import type { KeycloakServer } from './keycloak-server';

const AUDIENCE = 'https://api.example.com';
const CLIENT = join(__dirname, '../interop/clients/openid-client-dpop.mjs');

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

/** Defines the tests of tokens that the running Keycloak binds by DPoP. */
export function dpopTests(running: () => KeycloakServer): void {
  beforeAll(async () => {
    keycloak = running();
    till = await startScript<object>(CLIENT);
    const app = express();
    server = app.listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    gate = authenticate({
      preset: 'keycloak',
      issuer: keycloak.issuer,
      audience: AUDIENCE,
      logger: recordingLogger(),
      possession: [dpop({ baseUrl: origin })],
      possessionRequired: true,
    });
    app.use(gate);
    app.get('/orders', requireScope('orders:read'), (req, res) => void res.json(req.auth));
    await gate.ready();
  });

  afterAll(async () => {
    server?.close();
    await gate?.close();
    await till?.stop();
  });

  it.each([
    ['the header of a JWT', 'JWT', {}],
    ['the header of RFC 9068', 'at+jwt', { 'access.token.header.type.rfc9068': 'true' }],
  ])('are accepted with their proofs, with %s', async (_what, typ, attributes) => {
    const token = await tokenOf(`till-${typ}`, { 'dpop.bound.access.tokens': 'true', ...attributes });
    // Its second member is not registered: it need not be proven (RFC 7800 section 3.1).
    expect(shapeOf(token)).toEqual([typ, 'DPoP', ['jkt', 'kc-jkt-type']]);
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

  it('has two host names, of which the API can reach one: issuer is the public one, authUrl the other', async () => {
    const { issuer, internalUrl } = keycloak;
    expect([issuer, internalUrl].map((url) => new URL(url).hostname)).toEqual(['localhost', '127.0.0.1']);
    const metadata = await fetch(`${internalUrl}/.well-known/openid-configuration`);
    expect(await metadata.json()).toMatchObject({ issuer, jwks_uri: `${internalUrl}/protocol/openid-connect/certs` });

    const token = await keycloak.token('till-9', 'till-9-secret', 'orders:read');
    const check = async (variables: Record<string, string>): Promise<string> => {
      const env = { TILLGATE_PRESET: 'keycloak', TILLGATE_AUDIENCE: AUDIENCE, ...variables };
      return (await cliScene({ env, fetch }).run('check', '--token', token)).stdout;
    };
    expect(await check({ TILLGATE_AUTH_URL: internalUrl })).toContain(
      `got "${issuer}"\n        set TILLGATE_ISSUER to the issuer that it names`,
    );
    expect(await check({ TILLGATE_AUTH_URL: internalUrl, TILLGATE_ISSUER: issuer })).toMatch(
      /^ok {6}keys: .*\n(?:.*\n)*ok {6}token: /m,
    );
    const gate = { preset: 'keycloak', authUrl: internalUrl, audience: AUDIENCE } as const;
    const api = await guardedApi(issuer, gate);
    expect((await api.get('/orders', token)).status).toBe(200);
    await api.close();
  });
}
