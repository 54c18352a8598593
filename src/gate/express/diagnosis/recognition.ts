import type { UnverifiedToken } from '../../token/jws';
import { attempt } from '../../core/objects';
import { presetOfUrl, PRESETS, type Preset, type PresetName } from '../../token/presets';
import { REGISTERED_CONFIRMATIONS } from '../../token/claims';
import { checkClaims } from '../../verifier/steps';
import type { JsonObject } from '../../net/strict-json';

/** What a token shows of itself. */
type Shape = Pick<UnverifiedToken, 'header' | 'claims'>;

/** A family of authorization servers that a token or an issuer looks like. Advice only: it decides nothing. */
export interface Recognition {
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
  ['identityserver', [typIs('at+jwt'), ['jti is 32 hex digits', ({ jti }) => /^[0-9A-F]{32}$/.test(String(jti))]]],
  ['hydra', [typIs('JWT'), has('client_id'), isArray('scp')]],
];

/** Paths of key sets that only one family has; the embedded token server, on http:, has that of IdentityServer too. */
const KEY_SET_URLS: readonly (readonly [PresetName, RegExp])[] = [
  ['keycloak', /\/protocol\/openid-connect\/certs$/],
  ['okta', /\/oauth2\/[^/]+\/v1\/keys$/],
  ['entra', /\/discovery\/(?:v2\.0\/)?keys$/],
  ['ping', /\/pf\/JWKS$/],
  ['identityserver', /^https:.*\/\.well-known\/openid-configuration\/jwks$/],
  ['openiddict', /\/\.well-known\/jwks$/],
];

/**
 * The preset whose authorization servers make such tokens, if their shape shows it.
 *
 * @param jwksUri - where the issuer has its keys
 */
export function recognizeToken({ header, claims }: Shape, jwksUri?: string): Recognition | undefined {
  const row = SIGNS.find(([, signs]) => signs.every(([, applies]) => applies(claims, header)));
  if (row && fitsIssuer(row[0], claims['iss'])) return { preset: row[0], signs: row[1].map(([text]) => text) };
  const issuer = claims['iss'];
  return typeof issuer === 'string' ? recognizeIssuer(issuer, jwksUri) : undefined;
}

/** Others too have `token_use`: Cognito has no issuers with another URL, and no vendor has those of another one. */
function fitsIssuer(preset: PresetName, issuer: unknown): boolean {
  if (typeof issuer !== 'string') return true;
  const shown = recognizeIssuer(issuer)?.preset;
  return shown === undefined ? preset !== 'cognito' : shown === preset;
}

/** The preset of an issuer whose URL shows it, or that of its key set. */
export function recognizeIssuer(issuer: string, jwksUri = ''): Recognition | undefined {
  const byIssuer = presetOfUrl(issuer);
  if (byIssuer) return { preset: byIssuer, signs: ['iss is a URL of that vendor'] };
  const [byKeys] = KEY_SET_URLS.find(([, pattern]) => pattern.test(jwksUri)) ?? [];
  return byKeys && { preset: byKeys, signs: ['the key set has a path of that vendor'] };
}

/** In this order people are told what is missing. */
const NEEDED = ['iss', 'aud', 'exp', 'iat'];

/** The claims that a preset needs and a token has not: all at once. */
export function lackOf(claims: JsonObject, preset: Preset): readonly string[] {
  const isAbsent = (claim: string): boolean => claims[claim] === undefined;
  const ids = [...preset.clientIdClaims, ...(preset.clientCanBeSubject ? ['sub'] : [])];
  const needed = [...NEEDED, ...preset.requiredClaims, ...preset.fixedClaims.map(([name]) => name)].filter((claim) => {
    return isAbsent(claim) && !ids.includes(claim) && !(claim === 'aud' && preset.audienceCanBeAbsent);
  });
  return [...new Set([...needed, ...(ids.every(isAbsent) ? [ids.join(' or ')] : [])])];
}

/** Whether the preset for servers without a row of their own accepts the type and the claims of a token, whatever the time. */
export function fitsAnyServer({ header, claims }: Shape): boolean {
  const { jwt: preset } = PRESETS;
  if (!hasType(header, preset) || isOfAnotherKind(claims) || lackOf(claims, preset).length > 0) return false;
  const rules = {
    preset,
    issuer: String(claims['iss']),
    audiences: false,
    clientIds: undefined,
    clockToleranceMs: Infinity,
    maxTokenAgeMs: Infinity,
    confirmations: [...REGISTERED_CONFIRMATIONS],
  } as const;
  return attempt(() => checkClaims(claims, rules, Date.now())) !== undefined;
}

/** Whether a preset accepts the `typ` of a token. */
export function hasType({ typ }: JsonObject, { types }: Preset): boolean {
  return types.includes(typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : undefined);
}

/** Claims of ID tokens, refresh tokens, logout tokens and the like: no preset may be found for them. */
function isOfAnotherKind(claims: JsonObject): boolean {
  const kinds = [claims['typ'], claims['token_use']].filter((kind) => kind !== undefined);
  const isAccess = kinds.every((kind) => typeof kind === 'string' && ACCESS_KIND.test(kind));
  return !isAccess || OF_OTHER_KINDS.some((name) => claims[name] !== undefined);
}

const ACCESS_KIND = /^(?:bearer|dpop|access|access_token|at\+jwt|jwt)$/i;
const OF_OTHER_KINDS = ['nonce', 'auth_time', 'at_hash', 'c_hash', 'events', 'htm'];
