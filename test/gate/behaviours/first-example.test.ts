import type { Express, RequestHandler } from 'express';
import type { PresetName } from '../../../src/gate';
import { settle } from '../../support/fake-time';
import { gateApp } from '../../support/gate-app';
import { AUDIENCE, GENERATION, NOW, token } from '../../support/issuer';
import { jwks, testKey } from '../../support/keys';

const TENANT = '3f1c7a4e-0000-4000-8000-000000000001';
const ISSUER = 'https://login.example.com';

const times = { nbf: NOW, iat: NOW, exp: NOW + 300 };
const ofClient = { ...times, aud: AUDIENCE, client_id: 'pos-17', scope: 'orders:read' };
const ofRfc9068 = { ...ofClient, sub: 'pos-17', jti: 'j-1' };
const ofSubject = { ...times, aud: AUDIENCE, sub: 'pos-17' };

interface Shape {
  readonly name: string;
  readonly issuer?: string;
  readonly typ: string | undefined;
  readonly claims: object;
}

/** Shapes that issuer and audience alone accept. */
const ACCEPTED: readonly Shape[] = [
  {
    name: 'Keycloak 26',
    issuer: 'https://sso.example.com/realms/shop',
    typ: 'JWT',
    claims: { ...times, aud: ['account', AUDIENCE], azp: 'pos-17', sub: 's-1', typ: 'Bearer', scope: 'orders:read' },
  },
  {
    name: 'Auth0',
    issuer: 'https://shop.eu.auth0.com/',
    typ: 'JWT',
    claims: { ...ofSubject, azp: 'pos-17', scope: 'orders:read', gty: 'client-credentials' },
  },
  {
    name: 'Okta',
    issuer: 'https://shop.okta.com/oauth2/default',
    typ: undefined,
    claims: { ...ofSubject, cid: 'pos-17', scp: ['orders:read'], ver: 1, jti: 'AT.1' },
  },
  {
    name: 'Entra v2',
    issuer: `https://login.microsoftonline.com/${TENANT}/v2.0`,
    typ: 'JWT',
    claims: {
      ...ofSubject,
      oid: 'pos-17',
      azp: 'pos-17',
      azpacr: '1',
      roles: ['orders:read'],
      tid: TENANT,
      ver: '2.0',
    },
  },
  {
    name: 'Cognito with aud',
    issuer: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_Ab1',
    typ: undefined,
    claims: { ...ofRfc9068, token_use: 'access', version: 2 },
  },
  { name: 'Better Auth', typ: 'at+jwt', claims: { ...ofRfc9068, azp: 'pos-17' } },
  { name: 'Authlib', typ: 'at+jwt', claims: ofRfc9068 },
  { name: 'oidc-provider', typ: 'at+jwt', claims: ofRfc9068 },
  {
    name: 'OpenIddict with resources',
    typ: 'at+jwt',
    claims: { ...ofRfc9068, aud: [AUDIENCE], oi_prst: 'pos-17', oi_tkn_id: 't-1' },
  },
  { name: 'a stamped RFC 9068 token', typ: 'at+jwt', claims: { ...ofRfc9068, generation: GENERATION } },
];

/** Shapes of other servers, and the preset that accepts them: no part of their issuer's URL shows the product. */
const NAMED: readonly (Shape & { readonly preset: PresetName })[] = [
  {
    name: 'Hydra',
    preset: 'hydra',
    typ: 'JWT',
    claims: { ...ofSubject, client_id: 'pos-17', scp: ['orders:read'], ext: {}, jti: 'j-1' },
  },
  {
    name: 'IdentityServer, scopes as an array',
    preset: 'identityserver',
    typ: 'at+jwt',
    claims: { ...ofClient, scope: ['orders:read'], jti: '0123456789ABCDEF0123456789ABCDEF' },
  },
  {
    name: 'IdentityServer, scopes as a text',
    preset: 'identityserver',
    typ: 'at+jwt',
    claims: { ...ofClient, jti: '0123456789ABCDEF0123456789ABCDEF' },
  },
  {
    name: 'Spring Authorization Server with its default audience',
    preset: 'jwt',
    typ: undefined,
    claims: { ...ofSubject, scope: ['orders:read'] },
  },
  { name: 'mock-oauth2-server', preset: 'jwt', typ: 'JWT', claims: { ...ofSubject, jti: 'j-1', tid: 'default' } },
  { name: 'nanoidp', preset: 'jwt', typ: 'JWT', claims: { ...ofClient, token_use: 'access' } },
  {
    name: 'fosite with a subject',
    preset: 'jwt',
    typ: 'JWT',
    claims: { ...ofSubject, scp: ['orders:read'], jti: 'j-1' },
  },
];

function appOf({ issuer = ISSUER }: Shape, preset?: PresetName): ReturnType<typeof gateApp> {
  const routes = (app: Express, reach: RequestHandler): void => void app.get('/v1/orders', reach);
  return gateApp({ issuer, audience: AUDIENCE, keys: jwks(testKey()), preset, unguarded: 'allow', routes });
}

function tokenOf({ issuer = ISSUER, typ, claims }: Shape): string {
  const { alg, kid } = testKey();
  return token({ rawHeader: JSON.stringify({ alg, kid, typ }), payload: JSON.stringify({ iss: issuer, ...claims }) });
}

describe('the first example of the README: issuer and audience alone', () => {
  it.each(ACCEPTED)('accepts the token of $name', async (shape) => {
    const app = appOf(shape);
    await app.get(tokenOf(shape)).expect(200);
    expect(app.reached).toEqual(['GET /v1/orders']);
  });

  it.each(NAMED)('refuses the token of $name, and the first log line names the preset $preset', async (shape) => {
    const app = appOf(shape);
    await app.get(tokenOf(shape)).expect(401);
    expect(app.reached).toEqual([]);
    await settle();
    // The first line is the refusal itself.
    expect(app.log.entries[1]).toMatchObject({
      level: 'warn',
      fields: { issuer: ISSUER, option: 'preset', value: shape.preset },
      message: 'no token has been accepted so far: check the configuration',
    });
    await appOf(shape, shape.preset).get(tokenOf(shape)).expect(200);
  });
});
