import type { UnverifiedToken } from './jws';
import type { PresetName } from './presets';
import type { JsonObject } from './strict-json';

/** A family of authorization servers that a token or an issuer looks like. Advice only: it decides nothing. */
interface Recognition {
  readonly preset: PresetName;
  /** What it was recognized by, for people. */
  readonly signs: readonly string[];
}

type Sign = readonly [text: string, applies: (claims: JsonObject, header: JsonObject) => boolean];

const has = (name: string): Sign => [name, (claims) => claims[name] !== undefined];
const isArray = (name: string): Sign => [`${name} is an array`, (claims) => Array.isArray(claims[name])];
const equals = (name: string, value: string): Sign => [`${name} is ${value}`, (claims) => claims[name] === value];
const typIs = (type: string): Sign => [
  `typ is ${type}`,
  (_claims, { typ }) => typeof typ === 'string' && typ.toLowerCase() === type.toLowerCase(),
];

/** What only the tokens of one family have; all signs of a row must apply. The first row that fits counts. */
const SIGNS: readonly (readonly [PresetName, readonly Sign[]])[] = [
  ['keycloak', [typIs('JWT'), equals('typ', 'Bearer'), has('azp')]],
  ['keycloak', [typIs('at+jwt'), equals('typ', 'Bearer'), has('azp')]],
  ['keycloak', [equals('typ', 'DPoP'), has('azp')]],
  ['cognito', [equals('token_use', 'access'), has('client_id')]],
  ['auth0', [equals('gty', 'client-credentials')]],
  ['okta', [has('cid'), isArray('scp')]],
  ['entra', [has('tid'), has('azp')]],
  ['entra', [has('tid'), has('appid')]],
  ['openiddict', [has('oi_prst')]],
  ['openiddict', [has('oi_tkn_id')]],
  ['identityserver', [typIs('at+jwt'), isArray('scope')]],
  ['identityserver', [typIs('at+jwt'), has('client_generation')]],
  ['hydra', [typIs('JWT'), has('client_id'), isArray('scp')]],
];

/** Hosts and paths of issuers that only one family has. */
const ISSUERS: readonly (readonly [PresetName, RegExp])[] = [
  ['keycloak', /\/realms\/[^/]+$/],
  ['auth0', /^https:\/\/[^/]+\.auth0\.com\//],
  ['okta', /^https:\/\/[^/]+\.okta(?:preview)?\.com(?:\/|$)/],
  ['entra', /^https:\/\/(?:login\.microsoftonline\.com|sts\.windows\.net)\//],
  ['cognito', /^https:\/\/cognito-idp\.[^/]+\.amazonaws\.com\//],
  ['ping', /^https:\/\/auth\.pingone\.[^/]+\//],
];

/** Paths of key sets that only one family has; the embedded token server, on http:, has the one of IdentityServer too. */
const KEY_SETS: readonly (readonly [PresetName, RegExp])[] = [
  ['keycloak', /\/protocol\/openid-connect\/certs$/],
  ['okta', /\/oauth2\/[^/]+\/v1\/keys$/],
  ['entra', /\/discovery\/(?:v2\.0\/)?keys$/],
  ['identityserver', /^https:.*\/\.well-known\/openid-configuration\/jwks$/],
  ['openiddict', /\/\.well-known\/jwks$/],
  ['ping', /\/pf\/JWKS$/],
];

/** The preset whose authorization servers make such tokens, if their shape shows it. */
export function recognizeToken({
  header,
  claims,
}: Pick<UnverifiedToken, 'header' | 'claims'>): Recognition | undefined {
  const row = SIGNS.find(([, signs]) => signs.every(([, applies]) => applies(claims, header)));
  if (row) return { preset: row[0], signs: row[1].map(([text]) => text) };
  const issuer = claims['iss'];
  return typeof issuer === 'string' ? recognizeIssuer(issuer) : undefined;
}

/** The preset of an issuer whose URL shows it, or that of its key set. */
export function recognizeIssuer(issuer: string, jwksUri = ''): Recognition | undefined {
  const row = ISSUERS.find(([, pattern]) => pattern.test(issuer));
  if (row) return { preset: row[0], signs: ['iss is a URL of that vendor'] };
  const keySet = KEY_SETS.find(([, pattern]) => pattern.test(jwksUri));
  return keySet && { preset: keySet[0], signs: ['the key set has a path of that vendor'] };
}
