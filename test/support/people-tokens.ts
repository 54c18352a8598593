import type { PresetName } from '../../src/gate';
import { AUDIENCE, ISSUER, NOW } from './issuer';
import type { Members } from './issuer';
import type { VendorToken } from './vendor-tokens';

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
const common = { iss: ISSUER, iat: NOW, exp: NOW + 3_600, sub: USER };
const person = { ...common, aud: AUDIENCE };
const scoped = { ...person, scope: DELEGATED.join(' ') };
const named = { ...scoped, client_id: 'shop-app' };
const stampedByTime = { options: { generationClaim: 'iat' } };

/** Claims by preset; sources: RFC 9068 section 2.2 and the vendors' documentation of access tokens. */
const CLAIMS = {
  rfc9068: { ...named, jti: '1', auth_time: NOW, acr: '1', roles: ['manager'], groups: [] },
  identityserver: {
    ...{ ...person, nbf: NOW, scope: DELEGATED, client_id: 'shop-app' },
    ...{ auth_time: NOW, idp: 'local', amr: ['pwd'], role: 'manager' },
  },
  keycloak: {
    ...{ ...scoped, typ: 'Bearer', azp: 'shop-app', sid: 's-1', acr: '1', preferred_username: 'ana' },
    ...{ realm_access: { roles: ['manager'] }, resource_access: { 'shop-app': { roles: ['till'] } } },
  },
  auth0: {
    ...{ ...scoped, sub: 'auth0|42', aud: [AUDIENCE, 'https://shop.eu.auth0.com/userinfo'] },
    ...{ azp: 'shop-app', permissions: ['orders:read', 'orders:write'] },
  },
  okta: {
    ...{ ...person, ver: 1, jti: 'AT.x', cid: 'shop-app', uid: '00u1' },
    ...{ sub: 'ana@example.com', scp: DELEGATED, groups: ['managers'] },
  },
  entra: {
    ...{ ...person, nbf: NOW, azp: 'shop-app', azpacr: '0', oid: 'o-42', tid: 't', ver: '2.0' },
    ...{ scp: 'openid orders:read', roles: ['manager'] },
  },
  cognito: {
    ...{ ...common, scope: DELEGATED.join(' '), client_id: 'shop-app', token_use: 'access' },
    ...{ username: 'ana', 'cognito:groups': ['managers'], auth_time: NOW },
  },
  hydra: {
    ...{ ...person, aud: [AUDIENCE], nbf: NOW, client_id: 'shop-app' },
    ...{ scp: DELEGATED, ext: { roles: ['manager'] }, jti: '1' },
  },
  openiddict: { ...named, oi_prst: 'shop-app', oi_au_id: '1', oi_tkn_id: '7', role: ['manager'] },
  ping: { ...named, aud: [AUDIENCE], jti: '1', 'p1.userId': USER },
  jwt: { ...scoped, azp: 'shop-app', roles: ['manager'] },
} satisfies Record<PresetName, Members>;

/** One row per preset, in their order. */
const ROWS: readonly [string, PresetName, string | undefined, string, readonly string[], Partial<PersonToken>?][] = [
  [
    'RFC 9068: roles of SCIM, time and strength of the authentication',
    ...(['rfc9068', 'at+jwt', 'scope', ['roles', 'groups'], stampedByTime] as const),
  ],
  [
    'Duende: no client claims in tokens of people',
    ...(['identityserver', 'at+jwt', 'scope', ['role'], stampedByTime] as const),
  ],
  [
    'Keycloak: no client_id, roles of realm and client',
    ...(['keycloak', 'JWT', 'scope', ['realm_access.roles', 'resource_access']] as const),
  ],
  [
    'Auth0: all permissions of the user beside the scopes that the app asked for',
    ...(['auth0', 'JWT', 'scope', ['permissions']] as const),
  ],
  ['Okta', 'okta', undefined, 'scp', ['groups']],
  ['Entra v2: delegated scopes, and roles of the user', 'entra', 'JWT', 'scp', ['roles', 'groups']],
  ['Cognito: no aud, groups', 'cognito', undefined, 'scope', ['cognito:groups'], { audience: false }],
  ['Hydra: claims of the consent under ext', 'hydra', 'JWT', 'scp', ['ext']],
  ['OpenIddict', 'openiddict', 'at+jwt', 'scope', ['role']],
  ['PingOne', 'ping', 'at+jwt', 'scope', ['p1.userId']],
  ['a server without a row', 'jwt', 'JWT', 'scope', ['roles']],
];

export const PEOPLE_TOKENS: readonly PersonToken[] = ROWS.map(([name, preset, typ, scopesFrom, alsoIn, also]) => {
  const claims = CLAIMS[preset];
  const of = { audience: AUDIENCE, clientId: 'shop-app', scopes: DELEGATED, subject: claims.sub };
  return { name, preset, typ, claims, ...of, scopesFrom, alsoIn, ...also };
});
