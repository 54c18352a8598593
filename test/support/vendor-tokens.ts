import type { PresetName } from '../../src/gate';
import { AUDIENCE, GENERATION, ISSUER, NOW } from './issuer';
import type { Members } from './issuer';

/** A client-credentials token as one family of authorization servers makes it without configuration (values illustrative). */
export interface VendorToken {
  readonly name: string;
  readonly preset: PresetName;
  /** `typ` of the header; `undefined`: none. */
  readonly typ: string | undefined;
  readonly claims: Members;
  readonly audience: string | false;
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly subject?: string;
}

type Expected = Partial<Pick<VendorToken, 'audience' | 'clientId' | 'scopes'>>;

const SCOPES = ['orders:read', 'orders:write'];
const SERVICE_ACCOUNT = '0d1c8f5e-0000-4000-8000-000000000017';
const common = { iss: ISSUER, iat: NOW, exp: NOW + 3_600 };
const scoped = { ...common, aud: AUDIENCE, scope: SCOPES.join(' ') };
const named = { ...scoped, client_id: 'pos-17', jti: '1' };
const ofKeycloak = { ...named, aud: ['account', AUDIENCE], sub: SERVICE_ACCOUNT, typ: 'Bearer', azp: 'pos-17' };
const keycloakRoles = { realm_access: { roles: ['offline_access'] }, preferred_username: 'service-account-pos-17' };
const ofAuth0 = { ...scoped, sub: 'pos-17@clients' };
const ofEntra = { ...common, nbf: NOW, aud: AUDIENCE, oid: 'o-1', sub: 'o-1', roles: SCOPES };
const inEntraV2 = { azp: 'pos-17', azpacr: '1', tid: 't', uti: 'u', ver: '2.0' };
const ofDuende = { ...common, client_id: 'pos-17' };
const inDuende = { nbf: NOW, aud: 'commerce', jti: '0123456789ABCDEF0123456789ABCDEF' };
const ofCognito = { ...common, sub: 'pos-17', client_id: 'pos-17', token_use: 'access', version: 2, jti: '1' };
const cognitoScopes = SCOPES.map((scope) => `commerce/${scope}`);
const ofHydra = { ...common, aud: [AUDIENCE], sub: 'pos-17', client_id: 'pos-17', jti: '1' };
const ofOpenIddict = { ...scoped, aud: [AUDIENCE], sub: 'pos-17', client_id: 'pos-17' };
const ofPingOne = { ...named, aud: [AUDIENCE] };

/** One row per preset and shape; sources: RFC 9068 and the vendors' documentation. */
const ROWS: readonly [name: string, preset: PresetName, typ: string | undefined, claims: Members, also?: Expected][] = [
  ['RFC 9068', 'rfc9068', 'at+jwt', { ...named, sub: 'pos-17', generation: GENERATION }],
  [
    'Duende: scopes as an array, no sub, generation as a string',
    ...(['identityserver', 'at+jwt'] as const),
    { ...ofDuende, ...inDuende, scope: SCOPES, client_generation: String(GENERATION) },
    { audience: 'commerce' },
  ],
  [
    'Duende: scopes as a string, no aud',
    ...(['identityserver', 'at+jwt'] as const),
    { ...ofDuende, scope: SCOPES.join(' '), client_generation: GENERATION },
    { audience: false },
  ],
  ['OpenIddict', 'openiddict', 'at+jwt', { ...ofOpenIddict, oi_prst: 'pos-17', oi_tkn_id: '7' }],
  ['Keycloak: service account', 'keycloak', 'JWT', { ...ofKeycloak, ...keycloakRoles }],
  ['Keycloak: at+jwt by an option of the client', 'keycloak', 'at+jwt', ofKeycloak],
  ['Auth0: own profile', 'auth0', 'JWT', { ...ofAuth0, azp: 'pos-17', gty: 'client-credentials' }],
  ['Auth0: RFC 9068 profile', 'auth0', 'at+jwt', { ...ofAuth0, client_id: 'pos-17', jti: '1' }],
  [
    'Auth0: permissions of RBAC alone',
    ...(['auth0', 'JWT'] as const),
    { ...common, aud: AUDIENCE, sub: 'pos-17@clients', azp: 'pos-17', permissions: SCOPES },
  ],
  [
    'Okta',
    'okta',
    undefined,
    { ...common, ver: 1, jti: 'AT.x', aud: AUDIENCE, cid: 'pos-17', sub: 'pos-17', scp: SCOPES },
  ],
  ['Entra v2: app roles', 'entra', 'JWT', { ...ofEntra, ...inEntraV2 }],
  ['Entra v1: appid', 'entra', 'JWT', { ...ofEntra, appid: 'pos-17', ver: '1.0' }],
  [
    'Cognito: no aud, scopes after the resource server',
    ...(['cognito', undefined] as const),
    { ...ofCognito, scope: cognitoScopes.join(' ') },
    { audience: false, scopes: cognitoScopes },
  ],
  ['Hydra: scp as an array', 'hydra', 'JWT', { ...ofHydra, ext: {}, nbf: NOW, scp: SCOPES }],
  ['Hydra: scope as a string', 'hydra', 'JWT', { ...ofHydra, scope: SCOPES.join(' ') }],
  ['PingOne: at+jwt', 'ping', 'at+jwt', ofPingOne],
  ['PingOne: no typ, as before 2027-03-02', 'ping', undefined, ofPingOne],
  ['PingFederate: JWT', 'ping', 'JWT', { ...scoped, client_id: 'pos-17' }],
  [
    'Spring: no typ, no client id but sub, scopes as an array',
    ...(['jwt', undefined, { ...common, nbf: NOW, aud: AUDIENCE, sub: 'pos-17', scope: SCOPES }] as const),
    { clientId: 'sub:pos-17' },
  ],
  ['nanoidp: JWT with client_id', 'jwt', 'JWT', { ...scoped, client_id: 'pos-17', token_use: 'access' }],
  ['a server with azp and scp, at+jwt', 'jwt', 'at+jwt', { ...common, aud: AUDIENCE, azp: 'pos-17', scp: SCOPES }],
];

export const VENDOR_TOKENS: readonly VendorToken[] = ROWS.map(([name, preset, typ, claims, also]) => ({
  ...{ name, preset, typ, claims, audience: AUDIENCE, clientId: 'pos-17', scopes: SCOPES, ...also },
  ...('sub' in claims && { subject: claims['sub'] as string }),
}));
