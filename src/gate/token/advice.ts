import { AuthError } from '../core/errors';
import type { Logger } from '../core/logger';
import { attempt, isObject } from '../core/objects';
import { describe } from '../core/options';
import { REASONS } from '../core/reasons';
import type { Reason } from '../core/reasons';
import type { Caller } from './fair-queue';
import { isJwsShaped, parseToken } from './jws';
import type { UnverifiedToken } from './jws';
import { isScopeToken, namesAt, namesOfClaim } from './scopes';
import type { ScopeClaim, ScopeRule } from './scopes';
import { isForItsClient, PRESETS, signOfIdToken } from './presets';
import type { Preset, PresetName } from './presets';
import type { JsonObject } from './strict-json';

/** Where scopes are read. */
interface ScopeSettings {
  readonly preset: Preset;
  readonly scopes?: ScopeRule | undefined;
}

/** What the advice compares a token with, in the words of whoever reads it. */
export interface AdviceContext extends ScopeSettings {
  readonly issuer: string;
  /** Present where opaque tokens are introspected. */
  readonly opaque?: object | undefined;
  /** Says how to set an option: `set TILLGATE_PRESET=keycloak`. */
  readonly set: (
    option: 'issuer' | 'audience' | 'preset' | 'generationClaim' | 'maxTokenAgeSeconds',
    value: string | number,
  ) => string;
}

/**
 * What an operator can change so that tokens like this one are accepted; `undefined` where the reason does not suggest
 * a wrong configuration. The text quotes claims: it must not become part of a response.
 */
export function configurationAdvice(reason: Reason, raw: string, context: AdviceContext): string | undefined {
  const token = attempt(() => parseToken(raw));
  if (!token) return context.opaque && !isJwsShaped(raw) ? undefined : adviceForText(raw);
  const { set } = context;
  if (MICROSOFT_GRAPH.has(token.claims['aud'])) {
    return 'the token is for Microsoft Graph, and only Graph can verify it: let the client ask for a token of this API, with scope=api://<application ID of the API>/.default';
  }
  if (reason === 'wrong_type' && signOfIdToken(token.claims, context.preset) !== undefined) return ID_TOKEN;
  const recognized = recognizeToken(token);
  if (recognized && PRESETS[recognized.preset] !== context.preset && DEPENDS_ON_PRESET.has(reason)) {
    return `this token looks like ${recognized.preset} (${recognized.signs.join(', ')}): ${set('preset', recognized.preset)}`;
  }
  switch (reason) {
    case 'wrong_issuer': {
      const issuer = token.claims['iss'];
      const typo = difference(issuer, context.issuer);
      const other = typo === '' ? 'request the token from the expected one, or ' : '';
      const change = typeof issuer === 'string' ? `: ${other}${set('issuer', issuer)}` : '';
      return `iss is ${describe(issuer, 200)}, expected ${describe(context.issuer, 200)}${typo}${change}`;
    }
    case 'wrong_audience': {
      if (isForItsClient(token.claims)) return FOR_ITS_CLIENT;
      const audience: unknown = token.claims['aud'];
      const first: unknown = Array.isArray(audience) ? audience[0] : audience;
      if (typeof first !== 'string') return 'the token has no aud: let the authorization server add that of this API';
      return `aud is ${JSON.stringify(audience).slice(0, 200)}: ${set('audience', first)}, or let the authorization server add the aud of this API`;
    }
    case 'unknown_key':
      return `the key set of ${context.issuer} has no key ${describe(token.header['kid'])}: another server, realm or stage has signed the token; check that jwksUri (TILLGATE_JWKS_URI), where it is set, is the jwks_uri in the metadata of that issuer`;
    case 'generation_missing':
      return `the issuer stamps no generation: ${set('generationClaim', 'iat')}, or let the authorization server add the claim`;
    case 'lifetime_too_long': {
      const [from, until] = [Number(token.claims['iat']), Number(token.claims['exp'])];
      return `tokens live for ${until - from} s: let the issuer shorten that, or ${set('maxTokenAgeSeconds', until - from)}`;
    }
    case 'not_yet_valid':
      return 'compare the clock of this machine with that of the authorization server';
    case 'algorithm_not_allowed':
      return `alg is ${describe(token.header['alg'])}: let the issuer sign with an accepted one, such as RS256`;
    case 'wrong_type':
      return `typ is ${describe(token.header['typ'])}: let the issuer make access tokens of RFC 9068, or select the preset of its vendor`;
    case 'insufficient_scope':
      return scopeAdvice(token.claims, context);
    default:
      return undefined;
  }
}

const ID_TOKEN =
  'this is an ID token, which is for the client itself: send the access token, and request one for the audience of this API';
const FOR_ITS_CLIENT =
  'aud is the client itself, as in an ID token: request an access token for the audience of this API';

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
export function scopeClaims(claims: JsonObject, { preset, scopes }: ScopeSettings): readonly ScopeClaim[] {
  if (scopes?.from) return scopes.from;
  const [name] = preset.scopeClaims.filter((claim) => Object.hasOwn(claims, claim));
  return name === undefined ? [] : [{ path: [name], prefix: '' }];
}

/** What to change where a token has too few scopes: names that grant none, or claims that are not read; `undefined`: nothing. */
export function scopeAdvice(claims: JsonObject, settings: ScopeSettings): string | undefined {
  const readClaims = scopeClaims(claims, settings);
  const read = readClaims.map(({ path }) => path);
  const useless = readClaims
    .flatMap((claim) => namesOfClaim(claims, claim))
    .filter((name) => !grantsScope(name, settings.scopes));
  if (useless.length > 0) {
    const example = shellQuoted(JSON.stringify({ [useless[0] as string]: ['orders:read'] }));
    return `no scope comes from ${quoted(useless)}: if these are permissions, say which scopes they grant, for example TILLGATE_SCOPE_MAP=${example}, or the option scopes.map`;
  }
  const others = claimsWithNames(claims).filter((path) => !read.some((one) => one.join('\0') === path.join('\0')));
  if (others.length === 0) return undefined;
  const asGiven = (path: Path): string | Path => (path.every((name) => /^[\w-]+$/.test(name)) ? path.join('.') : path);
  const from = [
    ...readClaims.map(({ path, prefix }) => (prefix === '' ? asGiven(path) : { claim: asGiven(path), prefix })),
    ...others.map(asGiven),
  ];
  const asJson = JSON.stringify(from);
  const asText = from.every((claim) => typeof claim === 'string') ? from.join(',') : shellQuoted(asJson);
  return `the token also has names in ${quoted(others.map((path) => path.join('.')))}: if they are permissions, set TILLGATE_SCOPE_CLAIMS=${asText}, or the option scopes: { from: ${asJson} }`;
}

function grantsScope(name: string, rule: ScopeRule | undefined): boolean {
  if (rule?.map instanceof Map) return rule.map.has(name);
  return !rule || rule.map !== undefined || isScopeToken(name);
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

/** Pasted into a shell, names of the token must stay text. */
function shellQuoted(text: string): string {
  return `'${text.replace(/'/g, `'\\''`)}'`;
}

const DEPENDS_ON_PRESET: ReadonlySet<Reason> = new Set<Reason>([
  'wrong_type',
  'invalid_claims',
  'generation_missing',
  'generation_invalid',
]);

function adviceForText(raw: string): string {
  const parts = raw.split('.').length;
  if (parts === 5) return 'the token is encrypted (JWE, five parts): let the issuer make signed access tokens (JWS)';
  if (parts === 1) {
    return 'the token is opaque, not a JWT: let the issuer make JWT access tokens for this API, or ask it about opaque ones: set TILLGATE_INTROSPECTION_CLIENT_ID and TILLGATE_INTROSPECTION_CLIENT_SECRET, or the option opaque of authenticate()';
  }
  return 'the token is not a JSON Web Token: compare it with what the token endpoint returned';
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

/**
 * The same verification, which logs once what to change if the first tokens are refused for reasons that a wrong
 * configuration has. With several issuers a token does not show which of them is meant.
 *
 * @param isSigned - advice quotes the token, so its signature has to be good: a made-up one must not suggest anything
 */
export function withAdvice<Result>(
  verify: (token: string, caller?: Caller) => Promise<Result>,
  isSigned: (token: string) => Promise<boolean>,
  {
    issuers,
    logger,
  }: {
    readonly issuers: readonly Pick<AdviceContext, 'issuer' | 'preset' | 'opaque'>[];
    readonly logger: Logger;
  },
): (token: string, caller?: Caller) => Promise<Result> {
  const [issuer] = issuers;
  let watching = issuers.length === 1;

  async function advise(error: unknown, token: string): Promise<void> {
    if (!watching || !issuer || !(error instanceof AuthError)) return;
    const { reason } = error;
    if (!REASONS[reason].configuration) return;
    const advice = configurationAdvice(reason, token, {
      ...issuer,
      set: (option, value) => `set ${option}: ${typeof value === 'string' ? `'${value}'` : value}`,
    });
    if (advice === undefined || !(await isSigned(token))) return;
    // Another token may have been decided meanwhile.
    if (!watching) return;
    watching = false;
    logger.warn(
      { issuer: issuer.issuer, reason, advice },
      'no token has been accepted so far: check the configuration',
    );
  }

  return function verifyWithAdvice(token, caller) {
    const verifying = verify(token, caller);
    if (!watching) return verifying;
    const watched = verifying.then(
      () => void (watching = false),
      (error: unknown) => advise(error, token),
    );
    // A logger that throws must not end the process.
    watched.catch(() => undefined);
    return verifying;
  };
}
