import type { AuthError } from '../../core/errors';
import { attempt, isObject } from '../../core/objects';
import { describe } from '../../core/words';
import type { Reason } from '../../core/reasons';
import {
  describeNoToken,
  isJwsShaped,
  parseToken,
  REMOVED_SIGNATURE,
  secretHint,
  SIGNATURE_REMOVED,
} from '../../token/jws';
import type { UnverifiedToken } from '../../token/jws';
import { isForItsClient, signOfIdToken } from '../../token/claims';
import { PRESET_NAMES, presetOf, PRESETS } from '../../token/presets';
import type { Preset, PresetName } from '../../token/presets';
import { BEHIND_PROXY, isWithoutTls } from '../../token/keys/fetch-keys';
import { isScopeToken, namesAt, namesOfClaim, SCOPES_OPTION, wrongTypeAt } from '../../token/scopes';
import type { ScopeClaim, ScopeRule } from '../../token/scopes';
import type { JsonObject } from '../../net/strict-json';
import { originOf } from '../../verifier/trusted-token';
import type { Auth, IssuerOptions } from '../../verifier/options';
import type { GateSettings } from '../../verifier/read-options';
import { fitsAnyServer, hasType, lackOf, recognizeToken } from './recognition';

/** What an operator can change so that a token is accepted. It quotes claims: it must not become part of a response. */
export interface Advice {
  /** What is wrong, and what to change elsewhere where no option helps. */
  readonly why: string;
  /** The option of `authenticate()` to set, and its value. */
  readonly option?: 'issuer' | 'audience' | 'preset' | 'maxTokenAgeSeconds' | 'scopes.from' | 'scopes.map' | 'opaque';
  readonly value?: unknown;
  /** What helps instead of the option. */
  readonly otherwise?: string;
}

type Refusal = Pick<AuthError, 'reason' | 'privateDetail'>;

/** What the advice compares a token with. */
export interface AdviceContext {
  readonly issuer: string;
  readonly preset: Preset;
  /** Of the preset. Default: found by the row itself. */
  readonly presetName?: PresetName | undefined;
  readonly jwksUri?: string | undefined;
  /** Whether no option names the claim of the generation. */
  readonly elseIat?: boolean;
  readonly scopes?: ScopeRule | undefined;
  /** Present where opaque tokens are introspected. */
  readonly opaque?: object | undefined;
}

/** The context of options of `authenticate()`. */
export function adviceContext(
  token: string,
  given: { readonly issuer?: string | undefined } & Pick<
    IssuerOptions,
    'preset' | 'jwksUri' | 'generationClaim' | 'scopes' | 'opaque'
  >,
): AdviceContext {
  const { issuer = '', jwksUri, opaque } = given;
  const elseIat = given.generationClaim === undefined;
  const { name: presetName } = presetOf(issuer, given.preset);
  const preset = presetFor(isJwsShaped(token), PRESETS[presetName]);
  const scopes = SCOPES_OPTION.read(given.scopes, { factory: 'authenticate', name: 'scopes' });
  return { issuer, jwksUri, opaque, elseIat, presetName, preset, scopes };
}

/** Introspection responses have `scope`, also where JWTs of the preset have another claim. */
function presetFor(isJwt: boolean, preset: Preset): Preset {
  return isJwt ? preset : { ...preset, scopeClaims: [...preset.scopeClaims, 'scope'] };
}

/**
 * What an operator can change so that tokens like this one are accepted; `undefined` where the reason does not suggest
 * a wrong configuration.
 */
export function configurationAdvice(refusal: Refusal, raw: string, context: AdviceContext): Advice | undefined {
  const { reason, privateDetail: why } = refusal;
  const token = attempt(() => parseToken(raw));
  if (!token) return adviceForText(raw, context);
  if (MICROSOFT_GRAPH.has(token.claims['aud'])) return { why: GRAPH_TOKEN };
  const sign = reason === 'wrong_type' ? signOfIdToken(token.claims, context.preset) : undefined;
  if (sign !== undefined) return { why: sign === 'events' ? LOGOUT_TOKEN : ID_TOKEN };
  const ofPreset = DEPENDS_ON_PRESET.has(reason) ? presetAdvice(token, context) : undefined;
  if (reason === 'invalid_claims' && why !== undefined) return ofPreset ?? { why, otherwise: CORRECT_CLAIM };
  return ofPreset ?? adviceOn(reason, token, context);
}

/**
 * Which preset fits a token that does not fit the selected one: that of its vendor, else the one for any server. Where none
 * does: all that the server has to add.
 */
function presetAdvice(token: UnverifiedToken, context: AdviceContext): Advice | undefined {
  const { header, claims } = token;
  const selected = context.presetName ?? PRESET_NAMES.find((name) => PRESETS[name] === context.preset);
  const lack = lackOf(claims, context.preset);
  const recognized = recognizeToken(token, context.jwksUri);
  if (recognized && recognized.preset !== selected) {
    const { preset, signs } = recognized;
    const more = lackOf(claims, PRESETS[preset]);
    const also = more.length > 0 ? `, and the server must add ${more.join(', ')}` : '';
    return { why: `this token looks like ${preset} (${signs.join(', ')})${also}`, option: 'preset', value: preset };
  }
  const isTyped = hasType(header, context.preset);
  if (lack.length === 0 && isTyped) return undefined;
  const typ = header['typ'] === undefined ? 'the token has no typ' : `typ is ${describe(header['typ'])}`;
  // A typ may be missing in both of its places.
  const why = [...new Set([...(isTyped ? [] : [typ]), ...lack.map((name) => `the token has no ${name}`)])].join(', ');
  const hasClient = !lack.includes(context.preset.clientIdClaims.join(' or '));
  if (!isTyped && hasClient && selected === 'identityserver') return { why: `${why}: ${ACCESS_TOKEN_JWT_TYPE}` };
  const added = lack.join(', ');
  if (selected !== 'jwt' && fitsAnyServer(token)) {
    const otherwise = isTyped ? `have the server add ${added}` : BY_RFC9068;
    return { why, option: 'preset', value: 'jwt', otherwise };
  }
  if (lack.includes('aud')) return { why: `${why}: the server must add ${added}; ${WITHOUT_AUDIENCE}` };
  if (lack.length > 0) return { why: `${why}: no option takes such a token, the server must add ${added}` };
  // The preset for any server accepts every type that another one does.
  return { why: `${why}${hasType(header, PRESETS.jwt) ? '' : ', which no preset accepts'}: ${BY_RFC9068}` };
}

const ACCESS_TOKEN_JWT_TYPE = 'leave AccessTokenJwtType of IdentityServer at its default, at+jwt';
const BY_RFC9068 = 'have the issuer make access tokens by RFC 9068';
const WITHOUT_AUDIENCE = 'audience: false is for servers that cannot, under the presets cognito and identityserver';

function adviceOn(reason: Reason, { header, claims }: UnverifiedToken, context: AdviceContext): Advice | undefined {
  switch (reason) {
    case 'wrong_issuer':
      return issuerAdvice(claims, context.issuer);
    case 'wrong_audience':
      return audienceAdvice(claims);
    case 'unknown_key':
      return {
        why: `the key set of ${context.issuer} has no key ${describe(header['kid'])}: another server, realm or stage has signed the token; check that jwksUri (TILLGATE_JWKS_URI), where it is set, is the jwks_uri in the metadata of that issuer`,
      };
    case 'generation_missing':
      return { why: context.elseIat ? NO_NUMBER : CLAIM_MISSING };
    case 'lifetime_too_long': {
      const value = Number(claims['exp']) - Number(claims['iat']);
      const otherwise = 'have the issuer shorten that';
      return { why: `tokens live for ${value} s`, option: 'maxTokenAgeSeconds', value, otherwise };
    }
    case 'not_yet_valid':
      return { why: 'compare the clock of this machine with that of the authorization server' };
    case 'algorithm_not_allowed': {
      const hint =
        secretHint(header['alg'], claims['iss']) || ': have the issuer sign with an accepted one, such as RS256';
      return { why: `alg is ${describe(header['alg'])}${hint}` };
    }
    case 'insufficient_scope':
      return scopeAdvice(claims, context);
    default:
      return undefined;
  }
}

const CLAIM_MISSING =
  'the token lacks the claim that generationClaim (TILLGATE_GENERATION_CLAIM) names: have the authorization server add it, or leave the option out, and tokens without the claim are compared by iat';
const NO_NUMBER =
  'the claim of the generation is null, or a floor of the client is not a time in ms: have the authorization server stamp a number and name its claim with generationClaim (TILLGATE_GENERATION_CLAIM), or publish times in ms';

const CORRECT_CLAIM = 'have the authorization server correct that claim, or send an access token of this API';

function issuerAdvice({ iss: issuer }: JsonObject, expected: string): Advice {
  const [, tenant] = (!ENTRA_V1.test(expected) && ENTRA_V1.exec(String(issuer))) || [];
  if (tenant !== undefined) return adviceForVersion1(tenant);
  const typo = typeof issuer === 'string' ? difference(issuer, expected) : '';
  const why = `iss is ${describe(issuer, 200)}, expected ${describe(expected, 200)}${typo}`;
  if (typeof issuer !== 'string') return { why };
  if (isWithoutTls(issuer, expected)) return { why, otherwise: BEHIND_PROXY };
  const otherwise = typo === '' ? { otherwise: 'request the token from the expected one' } : {};
  return { why, option: 'issuer', value: issuer, ...otherwise };
}

function audienceAdvice(claims: JsonObject): Advice {
  if (isForItsClient(claims, ['sub'])) return { why: FOR_ITS_CLIENT };
  const audiences = [claims['aud']].flat().filter((audience) => typeof audience === 'string');
  if (audiences.length === 0) return { why: isLightweight(claims) ? LIGHTWEIGHT : NO_AUDIENCE };
  const why = `aud is ${JSON.stringify(claims['aud']).slice(0, 200)}`;
  const value = audiences.find((audience) => sharedBy(audience, claims) === undefined);
  if (value === undefined) return { why: `${why}, ${sharedBy(audiences[0] as string, claims)}` };
  return { why, option: 'audience', value, otherwise: 'have the authorization server add the aud of this API' };
}

/** Why an audience says nothing about this API: tokens for any other one have it too. `undefined`: it may be that of this API. */
function sharedBy(audience: string, { iss, ...claims }: JsonObject): string | undefined {
  const shared = SHARED_AUDIENCES.find(([pattern]) => pattern.test(audience));
  if (shared) return shared[1];
  if (isForItsClient({ ...claims, aud: audience }, ['sub'])) return `which is the client itself: ${ASK_FOR_AUDIENCE}`;
  const base = typeof iss === 'string' ? iss.replace(/\/?$/, '/') : '/';
  const isOfIssuer = OF_ISSUER.some((path) => audience === base + path);
  return isOfIssuer ? `which is the authorization server itself: ${ASK_FOR_AUDIENCE}` : undefined;
}

/** Of IdentityServer (`EmitStaticAudienceClaim`), and of the Management API of Auth0. */
const OF_ISSUER = ['resources', 'api/v2/'];

const NO_AUDIENCE = `the token has no aud: have the authorization server add that of this API; ${WITHOUT_AUDIENCE}`;
const LIGHTWEIGHT =
  'this is a lightweight access token of Keycloak, which leaves out aud and roles: switch "Always use lightweight access token" off for this client';

/** Keycloak 26 names the kind of a token in its id: `onltac:...`. */
function isLightweight({ jti, typ }: JsonObject): boolean {
  return typ === 'Bearer' && typeof jti === 'string' && /^(?:on|of|tr)lt\w\w:/.test(jti);
}

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

/** The issuer of tokens of version 1 of Entra, with their tenant. */
const ENTRA_V1 = /^https:\/\/sts\.windows\.net\/([\w.-]{1,100})\/$/;

const adviceForVersion1 = (tenant: string): Advice => ({
  why: `this is a token of version 1.0 of Entra: set requestedAccessTokenVersion (api.requestedAccessTokenVersion of the manifest) of the API to 2, and expect the issuer https://login.microsoftonline.com/${tenant}/v2.0; or expect this one, https://sts.windows.net/${tenant}/, with authUrl (TILLGATE_AUTH_URL) https://login.microsoftonline.com/${tenant}`,
});

const ID_TOKEN =
  'this is an ID token, which is for the client itself: send the access token, and request one for the audience of this API';
const LOGOUT_TOKEN =
  'this is a logout token or a security event, which tells of a change and grants nothing: send the access token';
const FOR_ITS_CLIENT =
  'aud is the client itself, as in an ID token: request an access token for the audience of this API';
const GRAPH_TOKEN =
  'the token is for Microsoft Graph, and only Graph can verify it: the client must ask for a token of this API, with scope=api://<application ID of the API>/.default';

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
  const odd = readClaims
    .map(({ path }) => [path.join('.'), wrongTypeAt(claims, path)] as const)
    .find(([, type]) => type);
  if (odd) return { why: `claim ${odd[0]} is ${odd[1]}, expected ${SCOPE_FORMS}: it counts as absent` };
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
  const why = `the token also has names in ${names}; if they are permissions, read them`;
  return { why, option: 'scopes.from', value: from };
}

const SCOPE_FORMS = 'a text of names between blanks or an array of texts';

/** What the log and `explain()` add about a caller without any scope; empty where its token shows nothing. */
export function scopeHint(auth: Auth, issuers: GateSettings['issuers']): string {
  const settings = auth.scopes.length > 0 ? undefined : issuers.find(({ issuer }) => issuer === auth.issuer);
  if (!settings) return '';
  // An opaque token has no key.
  const preset = presetFor(originOf(auth)?.key !== undefined, settings.preset);
  const advice = scopeAdvice(auth.claims, { ...settings, preset });
  return advice ? `; ${advice.why}` : '';
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

function adviceForText(raw: string, { jwksUri, opaque }: AdviceContext): Advice | undefined {
  const noToken = describeNoToken(raw);
  if (noToken !== undefined)
    return { why: `${noToken}: look where the client reads access_token of the token response` };
  if (opaque && !isJwsShaped(raw)) return undefined;
  const parts = raw.split('.');
  if (parts.length === 5) return adviceForEncrypted(parts[0] as string, jwksUri);
  if (parts.length === 3 && parts[2] === REMOVED_SIGNATURE) return { why: SIGNATURE_REMOVED };
  // Two long parts that do not begin as a JWT does are an opaque token of Hydra.
  const isOfHydra = parts.length === 2 && !raw.startsWith('eyJ') && parts.every((part) => part.length >= 10);
  if (parts.length === 1 || isOfHydra) {
    const otherwise =
      'have the issuer make JWTs for this API, as many do once the client asks for its audience or resource';
    return { why: 'the token is opaque, not a JWT', option: 'opaque', otherwise };
  }
  return { why: 'the token is not a JSON Web Token: compare it with what the token endpoint returned' };
}

const FOR_AUTH0 =
  'the token is encrypted for Auth0 itself, because the client names no audience: have it ask for a token of this API (parameter audience)';

function adviceForEncrypted(header: string, jwksUri = ''): Advice {
  const text = Buffer.from(header, 'base64url').toString();
  if (/"iss":"https:\/\/[^"/]+\.auth0\.com\/"/.test(text)) return { why: FOR_AUTH0 };
  const call = /\/\.well-known\/jwks$/.test(jwksUri) ? ' (OpenIddict: DisableAccessTokenEncryption())' : '';
  const otherwise = `have the issuer sign access tokens and not encrypt them (JWS)${call}`;
  return { why: 'the token is encrypted (JWE, five parts)', option: 'opaque', otherwise };
}

/** Differences between two issuers that are easy to overlook: they are compared byte for byte (RFC 9207 section 2.4). */
function difference(got: string, expected: string): string {
  if (got.replace(/\/$/, '') === expected.replace(/\/$/, '')) return ' (the slash at the end)';
  if (got.replace(/^https?/, '') === expected.replace(/^https?/, '')) return ' (http and https)';
  if (got.toLowerCase() === expected.toLowerCase()) return ' (upper and lower case)';
  return '';
}
