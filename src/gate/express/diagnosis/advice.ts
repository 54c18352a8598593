import { attempt, isObject } from '../../core/objects';
import { describe } from '../../core/options';
import type { Reason } from '../../core/reasons';
import { isJwsShaped, parseToken } from '../../token/jws';
import type { UnverifiedToken } from '../../token/jws';
import { isForItsClient, PRESETS, signOfIdToken } from '../../token/presets';
import type { Preset, PresetName } from '../../token/presets';
import { isScopeToken, namesAt, namesOfClaim, SCOPES_OPTION } from '../../token/scopes';
import type { ScopeClaim, ScopeOptions, ScopeRule } from '../../token/scopes';
import type { JsonObject } from '../../net/strict-json';

/** What an operator can change so that a token is accepted. It quotes claims: it must not become part of a response. */
export interface Advice {
  /** What is wrong, and what to change elsewhere where no option helps. */
  readonly why: string;
  /** The option of `authenticate()` to set, and its value. */
  readonly option?:
    | 'issuer'
    | 'audience'
    | 'preset'
    | 'generationClaim'
    | 'maxTokenAgeSeconds'
    | 'scopes.from'
    | 'scopes.map'
    | 'opaque';
  readonly value?: unknown;
  /** What helps instead of the option. */
  readonly otherwise?: string;
}

/** What the advice compares a token with. */
export interface AdviceContext {
  readonly issuer: string;
  readonly preset: Preset;
  readonly scopes?: ScopeRule | undefined;
  /** Present where opaque tokens are introspected. */
  readonly opaque?: object | undefined;
}

/** The context of options of `authenticate()`. Introspection responses have `scope`, also where JWTs of the preset have another claim. */
export function adviceContext(
  token: string,
  given: {
    readonly issuer?: string | undefined;
    readonly preset: PresetName;
    readonly scopes?: ScopeOptions | undefined;
    readonly opaque?: object | undefined;
  },
): AdviceContext {
  const { issuer = '', opaque } = given;
  const preset: Preset = PRESETS[given.preset];
  const scopeClaims = isJwsShaped(token) ? preset.scopeClaims : [...preset.scopeClaims, 'scope'];
  const scopes = SCOPES_OPTION.read(given.scopes, { factory: 'authenticate', name: 'scopes' });
  return { issuer, opaque, preset: { ...preset, scopeClaims }, scopes };
}

/**
 * What an operator can change so that tokens like this one are accepted; `undefined` where the reason does not suggest
 * a wrong configuration.
 */
export function configurationAdvice(reason: Reason, raw: string, context: AdviceContext): Advice | undefined {
  const token = attempt(() => parseToken(raw));
  if (!token) return context.opaque && !isJwsShaped(raw) ? undefined : adviceForText(raw);
  if (MICROSOFT_GRAPH.has(token.claims['aud'])) return FOR_GRAPH;
  if (reason === 'wrong_type' && signOfIdToken(token.claims, context.preset) !== undefined) return ID_TOKEN;
  const recognized = DEPENDS_ON_PRESET.has(reason) ? recognizeToken(token) : undefined;
  if (recognized && PRESETS[recognized.preset] !== context.preset) {
    const { preset, signs } = recognized;
    return { why: `this token looks like ${preset} (${signs.join(', ')})`, option: 'preset', value: preset };
  }
  return adviceOn(reason, token, context);
}

function adviceOn(reason: Reason, { header, claims }: UnverifiedToken, context: AdviceContext): Advice | undefined {
  switch (reason) {
    case 'wrong_issuer':
      return issuerAdvice(claims['iss'], context.issuer);
    case 'wrong_audience':
      return audienceAdvice(claims);
    case 'unknown_key':
      return {
        why: `the key set of ${context.issuer} has no key ${describe(header['kid'])}: another server, realm or stage has signed the token; check that jwksUri (TILLGATE_JWKS_URI), where it is set, is the jwks_uri in the metadata of that issuer`,
      };
    case 'generation_missing':
      return {
        why: 'the issuer stamps no generation',
        option: 'generationClaim',
        value: 'iat',
        otherwise: 'have the authorization server add the claim',
      };
    case 'lifetime_too_long': {
      const value = Number(claims['exp']) - Number(claims['iat']);
      const otherwise = 'have the issuer shorten that';
      return { why: `tokens live for ${value} s`, option: 'maxTokenAgeSeconds', value, otherwise };
    }
    case 'not_yet_valid':
      return { why: 'compare the clock of this machine with that of the authorization server' };
    case 'algorithm_not_allowed':
      return { why: `alg is ${describe(header['alg'])}: have the issuer sign with an accepted one, such as RS256` };
    case 'wrong_type':
      return {
        why: `typ is ${describe(header['typ'])}: have the issuer make access tokens by RFC 9068, or select the preset of its vendor`,
      };
    case 'insufficient_scope':
      return scopeAdvice(claims, context);
    default:
      return undefined;
  }
}

function issuerAdvice(issuer: unknown, expected: string): Advice {
  const typo = difference(issuer, expected);
  const why = `iss is ${describe(issuer, 200)}, expected ${describe(expected, 200)}${typo}`;
  if (typeof issuer !== 'string') return { why };
  const otherwise = typo === '' ? { otherwise: 'request the token from the expected one' } : {};
  return { why, option: 'issuer', value: issuer, ...otherwise };
}

function audienceAdvice(claims: JsonObject): Advice {
  if (isForItsClient(claims)) return FOR_ITS_CLIENT;
  const audiences = [claims['aud']].flat().filter((audience) => typeof audience === 'string');
  if (audiences.length === 0)
    return { why: 'the token has no aud: have the authorization server add that of this API' };
  const why = `aud is ${JSON.stringify(claims['aud']).slice(0, 200)}`;
  const value = audiences.find((audience) => sharedBy(audience, claims) === undefined);
  if (value === undefined) return { why: `${why}, ${sharedBy(audiences[0] as string, claims)}` };
  return { why, option: 'audience', value, otherwise: 'have the authorization server add the aud of this API' };
}

/** Why an audience says nothing about this API: tokens for any other one have it too. `undefined`: it may be that of this API. */
function sharedBy(audience: string, { iss, ...claims }: JsonObject): string | undefined {
  const shared = SHARED_AUDIENCES.find(([pattern]) => pattern.test(audience));
  if (shared) return shared[1];
  if (isForItsClient({ ...claims, aud: audience })) return `which is the client itself: ${ASK_FOR_AUDIENCE}`;
  const base = typeof iss === 'string' ? iss.replace(/\/?$/, '/') : '/';
  const isOfIssuer = OF_ISSUER.some((path) => audience === base + path);
  return isOfIssuer ? `which is the authorization server itself: ${ASK_FOR_AUDIENCE}` : undefined;
}

/** Of IdentityServer (`EmitStaticAudienceClaim`), and of the Management API of Auth0. */
const OF_ISSUER = ['resources', 'api/v2/'];

const ASK_FOR_AUDIENCE = 'the client must ask for a token of this API (parameter audience or resource)';

const SHARED_AUDIENCES: readonly (readonly [audience: RegExp, what: string])[] = [
  [
    /^account$/,
    'which nearly every token of a Keycloak realm has: add a mapper of the type Audience with the audience of this API to a client scope (docs/issuers.md, "Keycloak")',
  ],
  [
    /^authenticated$/,
    'which every token of a signed-in user has: have the authorization server add the audience of this API, as by a custom access token hook of Supabase',
  ],
  [
    /^https:\/\/kubernetes\.default\.svc(?:\.|$)/,
    'which every service account of the cluster has: project the token with the audience of this API (serviceAccountToken.audience)',
  ],
  [/\/userinfo\/?$/, `which is the userinfo endpoint of the authorization server: ${ASK_FOR_AUDIENCE}`],
];

const ID_TOKEN: Advice = {
  why: 'this is an ID token, which is for the client itself: send the access token, and request one for the audience of this API',
};
const FOR_ITS_CLIENT: Advice = {
  why: 'aud is the client itself, as in an ID token: request an access token for the audience of this API',
};
const FOR_GRAPH: Advice = {
  why: 'the token is for Microsoft Graph, and only Graph can verify it: the client must ask for a token of this API, with scope=api://<application ID of the API>/.default',
};

/** Its application ID, and its URL in tokens of version 1. */
const MICROSOFT_GRAPH: ReadonlySet<unknown> = new Set([
  '00000003-0000-0000-c000-000000000000',
  'https://graph.microsoft.com',
  'https://graph.microsoft.com/',
]);

/** Where servers put permissions; Keycloak also under `resource_access.<client>.roles`. */
const PERMISSION_CLAIMS = [['scope'], ['scp'], ['permissions'], ['roles'], ['realm_access', 'roles']] as const;
const MAX_CLIENTS = 5;
const MAX_NAMES = 10;

type Path = readonly string[];

/** Which claims of a token are read as scopes. */
export function scopeClaims(claims: JsonObject, { preset, scopes }: AdviceContext): readonly ScopeClaim[] {
  if (scopes?.from) return scopes.from;
  const [name] = preset.scopeClaims.filter((claim) => Object.hasOwn(claims, claim));
  return name === undefined ? [] : [{ path: [name], prefix: '' }];
}

/** What to change where a token has too few scopes: names that grant none, or claims that are not read; `undefined`: nothing. */
export function scopeAdvice(claims: JsonObject, settings: AdviceContext): Advice | undefined {
  const readClaims = scopeClaims(claims, settings);
  const read = readClaims.map(({ path }) => path);
  const useless = readClaims
    .flatMap((claim) => namesOfClaim(claims, claim))
    .filter((name) => !grantsScope(name, settings.scopes));
  if (useless.length > 0) {
    const why = `no scope comes from ${quoted(useless)}; if these are permissions, say which scopes they grant`;
    return { why, option: 'scopes.map', value: { [useless[0] as string]: ['orders:read'] } };
  }
  const others = claimsWithNames(claims).filter((path) => !read.some((one) => one.join('\0') === path.join('\0')));
  if (others.length === 0) return undefined;
  const asGiven = (path: Path): string | Path => (path.every((name) => /^[\w-]+$/.test(name)) ? path.join('.') : path);
  const from = [
    ...readClaims.map(({ path, prefix }) => (prefix === '' ? asGiven(path) : { claim: asGiven(path), prefix })),
    ...others.map(asGiven),
  ];
  const names = quoted(others.map((path) => path.join('.')));
  return {
    why: `the token also has names in ${names}; if they are permissions, read them`,
    option: 'scopes.from',
    value: from,
  };
}

function grantsScope(name: string, rule: ScopeRule | undefined): boolean {
  return rule?.map ? rule.map.has(name) : !rule || isScopeToken(name);
}

function claimsWithNames(claims: JsonObject): readonly Path[] {
  const access = claims['resource_access'];
  // Every token of Keycloak has roles of this client, for its own pages.
  const clients = isObject(access) ? Object.keys(access).filter((client) => client !== 'account') : [];
  const ofClients = clients.slice(0, MAX_CLIENTS).map((client) => ['resource_access', client, 'roles'] as const);
  return [...PERMISSION_CLAIMS, ...ofClients].filter((path) => namesAt(claims, path).length > 0);
}

function quoted(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES).map((name) => JSON.stringify(name));
  return `${shown.join(', ')}${names.length > MAX_NAMES ? ', ...' : ''}`;
}

const DEPENDS_ON_PRESET: ReadonlySet<Reason> = new Set<Reason>([
  'wrong_type',
  'invalid_claims',
  'generation_missing',
  'generation_invalid',
]);

function adviceForText(raw: string): Advice {
  const parts = raw.split('.').length;
  if (parts === 5) {
    return {
      why: 'the token is encrypted (JWE, five parts): have the issuer sign access tokens and not encrypt them (JWS)',
    };
  }
  if (parts === 1) {
    const otherwise = 'have the issuer make JWTs for this API';
    return { why: 'the token is opaque, not a JWT', option: 'opaque', otherwise };
  }
  return { why: 'the token is not a JSON Web Token: compare it with what the token endpoint returned' };
}

/** Differences between two issuers that are easy to overlook: they are compared byte for byte (RFC 9207 section 2.4). */
function difference(got: unknown, expected: string): string {
  if (typeof got !== 'string') return '';
  if (got.replace(/\/$/, '') === expected.replace(/\/$/, '')) return ' (the slash at the end)';
  if (got.replace(/^https?/, '') === expected.replace(/^https?/, '')) return ' (http and https)';
  if (got.toLowerCase() === expected.toLowerCase()) return ' (upper and lower case)';
  return '';
}

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

/** Issuers and paths of key sets that only one family has; the embedded token server, on http:, has that of IdentityServer too. */
const URLS: readonly (readonly [PresetName, issuer: RegExp | undefined, jwksUri?: RegExp])[] = [
  ['keycloak', /\/realms\/[^/]+$/, /\/protocol\/openid-connect\/certs$/],
  ['auth0', /^https:\/\/[^/]+\.auth0\.com\//],
  ['okta', /^https:\/\/[^/]+\.okta(?:preview)?\.com(?:\/|$)/, /\/oauth2\/[^/]+\/v1\/keys$/],
  ['entra', /^https:\/\/(?:login\.microsoftonline\.com|sts\.windows\.net)\//, /\/discovery\/(?:v2\.0\/)?keys$/],
  ['cognito', /^https:\/\/cognito-idp\.[^/]+\.amazonaws\.com\//],
  ['ping', /^https:\/\/auth\.pingone\.[^/]+\//, /\/pf\/JWKS$/],
  ['identityserver', undefined, /^https:.*\/\.well-known\/openid-configuration\/jwks$/],
  ['openiddict', undefined, /\/\.well-known\/jwks$/],
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
  const [byIssuer] = URLS.find(([, pattern]) => pattern?.test(issuer)) ?? [];
  if (byIssuer) return { preset: byIssuer, signs: ['iss is a URL of that vendor'] };
  const [byKeys] = URLS.find(([, , pattern]) => pattern?.test(jwksUri)) ?? [];
  return byKeys && { preset: byKeys, signs: ['the key set has a path of that vendor'] };
}
