import { AUDIENCE, ISSUER, NOW } from './issuer';
import type { VendorToken } from './vendor-tokens';

const common = { iss: ISSUER, iat: NOW, exp: NOW + 3_600 };

/** A token of a person, as the authorization code grant gets it. */
export interface PersonToken extends VendorToken {
  readonly subject: string;
  /** The claim that the scopes are read from. */
  readonly scopesFrom: string;
  /** Claims with roles, groups or permissions of the person, which the preset does not read. */
  readonly alsoIn: readonly string[];
  /** What the gate needs besides the preset. */
  readonly options?: { readonly generationClaim: string };
}

const USER = '0d1c8f5e-0000-4000-8000-000000000042';
const DELEGATED = ['openid', 'orders:read'];
const shop = { audience: AUDIENCE, clientId: 'shop-app', scopes: DELEGATED, subject: USER };
const ofUser = { ...common, aud: AUDIENCE, sub: USER };
const withScope = { scope: DELEGATED.join(' ') };
const stampedByTime = { options: { generationClaim: 'iat' } };

/** One row per preset, in their order; sources: RFC 9068 section 2.2 and the vendors' documentation of access tokens. */
export const PEOPLE_TOKENS: readonly PersonToken[] = [
  {
    name: 'RFC 9068: roles of SCIM, time and strength of the authentication',
    preset: 'rfc9068',
    typ: 'at+jwt',
    claims: {
      ...ofUser,
      ...withScope,
      client_id: 'shop-app',
      jti: '1',
      auth_time: NOW,
      acr: '1',
      roles: ['manager'],
      groups: [],
    },
    ...shop,
    ...stampedByTime,
    scopesFrom: 'scope',
    alsoIn: ['roles', 'groups'],
  },
  {
    name: 'Duende: no client claims in tokens of people',
    preset: 'identityserver',
    typ: 'at+jwt',
    claims: {
      ...ofUser,
      nbf: NOW,
      scope: DELEGATED,
      client_id: 'shop-app',
      auth_time: NOW,
      idp: 'local',
      amr: ['pwd'],
      role: 'manager',
    },
    ...shop,
    ...stampedByTime,
    scopesFrom: 'scope',
    alsoIn: ['role'],
  },
  {
    name: 'Keycloak: no client_id, roles of realm and client',
    preset: 'keycloak',
    typ: 'JWT',
    claims: {
      ...ofUser,
      ...withScope,
      typ: 'Bearer',
      azp: 'shop-app',
      sid: 's-1',
      acr: '1',
      realm_access: { roles: ['manager'] },
      resource_access: { 'shop-app': { roles: ['till'] } },
      preferred_username: 'ana',
    },
    ...shop,
    scopesFrom: 'scope',
    alsoIn: ['realm_access.roles', 'resource_access'],
  },
  {
    name: 'Auth0: all permissions of the user beside the scopes that the app asked for',
    preset: 'auth0',
    typ: 'JWT',
    claims: {
      ...ofUser,
      ...withScope,
      sub: 'auth0|42',
      aud: [AUDIENCE, 'https://shop.eu.auth0.com/userinfo'],
      azp: 'shop-app',
      permissions: ['orders:read', 'orders:write'],
    },
    ...shop,
    subject: 'auth0|42',
    scopesFrom: 'scope',
    alsoIn: ['permissions'],
  },
  {
    name: 'Okta',
    preset: 'okta',
    typ: undefined,
    claims: {
      ...ofUser,
      ver: 1,
      jti: 'AT.x',
      cid: 'shop-app',
      uid: '00u1',
      sub: 'ana@example.com',
      scp: DELEGATED,
      groups: ['managers'],
    },
    ...shop,
    subject: 'ana@example.com',
    scopesFrom: 'scp',
    alsoIn: ['groups'],
  },
  {
    name: 'Entra v2: delegated scopes, and roles of the user',
    preset: 'entra',
    typ: 'JWT',
    claims: {
      ...ofUser,
      nbf: NOW,
      azp: 'shop-app',
      azpacr: '0',
      oid: 'o-42',
      tid: 't',
      ver: '2.0',
      scp: 'openid orders:read',
      roles: ['manager'],
    },
    ...shop,
    scopesFrom: 'scp',
    alsoIn: ['roles', 'groups'],
  },
  {
    name: 'Cognito: no aud, groups',
    preset: 'cognito',
    typ: undefined,
    claims: {
      ...common,
      ...withScope,
      sub: USER,
      client_id: 'shop-app',
      token_use: 'access',
      username: 'ana',
      'cognito:groups': ['managers'],
      auth_time: NOW,
    },
    ...shop,
    audience: false,
    scopesFrom: 'scope',
    alsoIn: ['cognito:groups'],
  },
  {
    name: 'Hydra: claims of the consent under ext',
    preset: 'hydra',
    typ: 'JWT',
    claims: {
      ...ofUser,
      aud: [AUDIENCE],
      nbf: NOW,
      client_id: 'shop-app',
      scp: DELEGATED,
      ext: { roles: ['manager'] },
      jti: '1',
    },
    ...shop,
    scopesFrom: 'scp',
    alsoIn: ['ext'],
  },
  {
    name: 'OpenIddict',
    preset: 'openiddict',
    typ: 'at+jwt',
    claims: {
      ...ofUser,
      ...withScope,
      client_id: 'shop-app',
      oi_prst: 'shop-app',
      oi_au_id: '1',
      oi_tkn_id: '7',
      role: ['manager'],
    },
    ...shop,
    scopesFrom: 'scope',
    alsoIn: ['role'],
  },
  {
    name: 'PingOne',
    preset: 'ping',
    typ: 'at+jwt',
    claims: { ...ofUser, ...withScope, aud: [AUDIENCE], client_id: 'shop-app', jti: '1', 'p1.userId': USER },
    ...shop,
    scopesFrom: 'scope',
    alsoIn: ['p1.userId'],
  },
];
