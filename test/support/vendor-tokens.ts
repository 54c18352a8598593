import type { PresetName } from '../../src';
import { AUDIENCE, GENERATION, ISSUER, NOW } from './issuer';

/** A client-credentials token as one family of authorization servers makes it without configuration (values illustrative). */
export interface VendorToken {
  readonly name: string;
  readonly preset: PresetName;
  /** `typ` of the header; `undefined`: none. */
  readonly typ: string | undefined;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly audience: string | false;
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly subject?: string;
}

const common = { iss: ISSUER, iat: NOW, exp: NOW + 3_600 };
const SCOPES = ['orders:read', 'orders:write'];
const pos = { clientId: 'pos-17', scopes: SCOPES };

/** One row per preset and shape; sources: RFC 9068 and the vendors' documentation. */
export const VENDOR_TOKENS: readonly VendorToken[] = [
  {
    name: 'RFC 9068',
    preset: 'rfc9068',
    typ: 'at+jwt',
    claims: {
      ...common,
      generation: GENERATION,
      aud: AUDIENCE,
      sub: 'pos-17',
      client_id: 'pos-17',
      scope: 'orders:read orders:write',
      jti: '1',
    },
    audience: AUDIENCE,
    ...pos,
    subject: 'pos-17',
  },
  {
    name: 'Duende: scopes as an array, no sub, generation as a string',
    preset: 'identityserver',
    typ: 'at+jwt',
    claims: {
      ...common,
      nbf: NOW,
      aud: 'commerce',
      scope: SCOPES,
      client_id: 'pos-17',
      jti: '0123456789ABCDEF0123456789ABCDEF',
      client_generation: String(GENERATION),
    },
    audience: 'commerce',
    ...pos,
  },
  {
    name: 'Duende: scopes as a string, no aud',
    preset: 'identityserver',
    typ: 'at+jwt',
    claims: { ...common, scope: 'orders:read orders:write', client_id: 'pos-17', client_generation: GENERATION },
    audience: false,
    ...pos,
  },
  {
    name: 'OpenIddict',
    preset: 'openiddict',
    typ: 'at+jwt',
    claims: {
      ...common,
      aud: [AUDIENCE],
      sub: 'pos-17',
      client_id: 'pos-17',
      oi_prst: 'pos-17',
      scope: SCOPES.join(' '),
      oi_tkn_id: '7',
    },
    audience: AUDIENCE,
    ...pos,
    subject: 'pos-17',
  },
  {
    name: 'Keycloak: service account',
    preset: 'keycloak',
    typ: 'JWT',
    claims: {
      ...common,
      aud: ['account', AUDIENCE],
      sub: '0d1c8f5e-0000-4000-8000-000000000017',
      typ: 'Bearer',
      azp: 'pos-17',
      client_id: 'pos-17',
      scope: SCOPES.join(' '),
      realm_access: { roles: ['offline_access'] },
      preferred_username: 'service-account-pos-17',
      jti: '1',
    },
    audience: AUDIENCE,
    ...pos,
    subject: '0d1c8f5e-0000-4000-8000-000000000017',
  },
  {
    name: 'Auth0: own profile',
    preset: 'auth0',
    typ: 'JWT',
    claims: {
      ...common,
      aud: AUDIENCE,
      sub: 'pos-17@clients',
      azp: 'pos-17',
      gty: 'client-credentials',
      scope: SCOPES.join(' '),
    },
    audience: AUDIENCE,
    ...pos,
    subject: 'pos-17@clients',
  },
  {
    name: 'Auth0: RFC 9068 profile',
    preset: 'auth0',
    typ: 'at+jwt',
    claims: {
      ...common,
      aud: AUDIENCE,
      sub: 'pos-17@clients',
      client_id: 'pos-17',
      scope: SCOPES.join(' '),
      jti: '1',
    },
    audience: AUDIENCE,
    ...pos,
    subject: 'pos-17@clients',
  },
  {
    name: 'Auth0: permissions of RBAC alone',
    preset: 'auth0',
    typ: 'JWT',
    claims: { ...common, aud: AUDIENCE, sub: 'pos-17@clients', azp: 'pos-17', permissions: SCOPES },
    audience: AUDIENCE,
    ...pos,
    subject: 'pos-17@clients',
  },
  {
    name: 'Okta',
    preset: 'okta',
    typ: undefined,
    claims: { ...common, ver: 1, jti: 'AT.x', aud: AUDIENCE, cid: 'pos-17', sub: 'pos-17', scp: SCOPES },
    audience: AUDIENCE,
    ...pos,
    subject: 'pos-17',
  },
  {
    name: 'Entra v2: app roles',
    preset: 'entra',
    typ: 'JWT',
    claims: {
      ...common,
      nbf: NOW,
      aud: AUDIENCE,
      azp: 'pos-17',
      azpacr: '1',
      oid: 'o-1',
      sub: 'o-1',
      tid: 't',
      uti: 'u',
      ver: '2.0',
      roles: SCOPES,
    },
    audience: AUDIENCE,
    ...pos,
    subject: 'o-1',
  },
  {
    name: 'Entra v1: appid',
    preset: 'entra',
    typ: 'JWT',
    claims: { ...common, nbf: NOW, aud: AUDIENCE, appid: 'pos-17', oid: 'o-1', sub: 'o-1', ver: '1.0', roles: SCOPES },
    audience: AUDIENCE,
    ...pos,
    subject: 'o-1',
  },
  {
    name: 'Cognito: no aud, scopes after the resource server',
    preset: 'cognito',
    typ: undefined,
    claims: {
      ...common,
      sub: 'pos-17',
      client_id: 'pos-17',
      token_use: 'access',
      scope: 'commerce/orders:read commerce/orders:write',
      version: 2,
      jti: '1',
    },
    audience: false,
    clientId: 'pos-17',
    scopes: ['commerce/orders:read', 'commerce/orders:write'],
    subject: 'pos-17',
  },
  {
    name: 'Hydra: scp as an array',
    preset: 'hydra',
    typ: 'JWT',
    claims: {
      ...common,
      aud: [AUDIENCE],
      sub: 'pos-17',
      client_id: 'pos-17',
      ext: {},
      nbf: NOW,
      scp: SCOPES,
      jti: '1',
    },
    audience: AUDIENCE,
    ...pos,
    subject: 'pos-17',
  },
  {
    name: 'Hydra: scope as a string',
    preset: 'hydra',
    typ: 'JWT',
    claims: { ...common, aud: [AUDIENCE], sub: 'pos-17', client_id: 'pos-17', scope: SCOPES.join(' '), jti: '1' },
    audience: AUDIENCE,
    ...pos,
    subject: 'pos-17',
  },
  {
    name: 'PingOne: at+jwt',
    preset: 'ping',
    typ: 'at+jwt',
    claims: { ...common, aud: [AUDIENCE], client_id: 'pos-17', scope: SCOPES.join(' '), jti: '1' },
    audience: AUDIENCE,
    ...pos,
  },
  {
    name: 'PingFederate: JWT',
    preset: 'ping',
    typ: 'JWT',
    claims: { ...common, aud: AUDIENCE, client_id: 'pos-17', scope: SCOPES.join(' ') },
    audience: AUDIENCE,
    ...pos,
  },
];
