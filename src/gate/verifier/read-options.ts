import { DEPENDENCIES, option, readOptions, refuseOption } from '../core/options';
import type { TableOf, ValuesOf } from '../core/options';
import { readClaimPath } from '../core/claim-path';
import { PROBLEM_TYPES } from '../core/refusal';
import { attempt, isList } from '../core/objects';
import { hasUserInfo, isHttpUrl, isSecureUrl, parseUrl } from '../core/urls';
import { TOKEN_AGE_OPTION } from '../generation/floors';
import type { GenerationSource } from '../generation/log';
import { ALGORITHMS, readAlgorithms } from '../token/signature';
import { OPAQUE_OPTION } from '../token/opaque-options';
import type { Jwks } from '../token/keys/key-set';
import type { KeyStore } from '../token/keys/key-store';
import type { Possession } from '../possession/possession';
import { PRESET_NAMES, presetOf, PRESETS, type Preset } from '../token/presets';
import { SCOPES_OPTION } from '../token/scopes';
import type { AuthenticateOptions, GateOptions, IssuerOptions } from './options';
import { readScopeList } from './scope-requirement';

const FACTORY = 'authenticate';
const SOME_ALGORITHMS = `an array with some of ${ALGORITHMS.join(', ')}`;

/** OpenID Connect Discovery 1.0 section 4, RFC 8414 section 3. */
const METADATA = /\/\.well-known\/(?:openid-configuration|oauth-authorization-server)/;

/**
 * A URL without a query and a fragment (RFC 8414 section 2): its metadata would be that of another issuer. It is in every
 * log line, also where nothing is fetched from it.
 */
const ISSUER_URL = option('a non-empty string', (given, at) => {
  if (typeof given !== 'string' || given === '') return undefined;
  if (parseUrl(given) && hasUserInfo(given)) refuseOption(at, 'a URL without user name and password', given);
  if (/^https?:[^?#]*[?#]/i.test(given)) refuseOption(at, 'a URL without a query and a fragment', given);
  if (METADATA.test(given)) refuseOption(at, 'the iss of the tokens, not the URL of the metadata', given);
  return given;
});

const AUDIENCE = 'the aud of your API: a non-empty string, or an array of them';

/** Up to a day. */
const MS = { unit: 'milliseconds', min: 1, max: 86_400_000 };

/** The options of one issuer. */
export const ISSUER_OPTIONS = {
  issuer: option.required(ISSUER_URL, "the issuer's URL, exactly as in the token's iss"),
  // Whether it can be `false` is up to the preset.
  audience: option(AUDIENCE, (given) => given),
  clientIds: option('an array of client ids', readStrings),
  authUrl: ISSUER_URL,
  jwksUri: option.string(),
  keys: option('a JSON Web Key Set', (given) => (typeof given === 'object' && given ? (given as Jwks) : undefined)),
  preset: option.oneOf(PRESET_NAMES),
  algorithms: option(SOME_ALGORITHMS, acceptedAlgorithms, ALGORITHMS),
  scopes: SCOPES_OPTION,
  generationClaim: option('the name of a claim, or false to switch the check off', (given) => {
    const path = given !== false && readClaimPath(given);
    return path === false ? path : path && (typeof given === 'string' ? given : path);
  }),
  generationSource: option('a generation source, or its URL', (given) => {
    const fits = typeof given === 'string' || typeof (given as GenerationSource | null)?.reader === 'function';
    return fits ? (given as GenerationSource | string) : undefined;
  }),
  maxStalenessMs: option.number(MS, 60_000),
  maxSilenceMs: option.number(MS, 900_000),
  onStale: option.oneOf(['reject', 'accept'], 'reject'),
  opaque: OPAQUE_OPTION,
  keysMaxAgeMs: option.number({ ...MS, min: 1_000 }, 600_000),
  keysStaleMs: option.number({ ...MS, min: 0, max: 7 * MS.max }, 3_600_000),
  clockToleranceSeconds: option.number({ unit: 'seconds', min: 0, max: 300 }, 10),
  maxTokenAgeSeconds: TOKEN_AGE_OPTION,
} satisfies TableOf<IssuerOptions>;

/** The options of a gate, without those of its issuers. */
export const GATE_OPTIONS = {
  // The default depends on `optional`.
  unguarded: option.oneOf(['allow', 'warn', 'refuse']),
  optional: option.boolean(false),
  refusals: option.oneOf(['respond', 'next'], 'respond'),
  realm: option.string('api'),
  resource: option('a non-empty string', (given, at) => {
    if (typeof given !== 'string' || given === '') return undefined;
    urlCheck(at.factory, true)(given, at.name);
    // RFC 9728 section 1.2.
    return given.includes('#') ? refuseOption(at, 'a URL without a fragment', given) : given;
  }),
  challengeScopes: option('an array of scopes', (given, { factory, name }) => {
    return readScopeList(given, factory, `option "${name}": `);
  }),
  problemTypes: PROBLEM_TYPES,
  // The default depends on NODE_ENV.
  exposeReasons: option.boolean(),
  possession: option('an array of what dpop() and mtls() return, each once', readPossession, []),
  possessionRequired: option.boolean(false),
  allowHttp: option.boolean(false),
  keyStore: option.withMethods<KeyStore>(['load', 'save'], 'an object with the functions load and save'),
  onDecision: option.callable<GateOptions['onDecision']>(),
  ...DEPENDENCIES,
} satisfies TableOf<GateOptions>;

function readPossession(given: unknown): readonly Possession[] | undefined {
  if (!isList(given)) return undefined;
  const kinds = given as readonly (Possession | null)[];
  const isKind = (kind: Possession | null): boolean =>
    typeof kind?.confirmation === 'string' && typeof kind.challenge === 'function' && typeof kind.verify === 'function';
  if (!kinds.every(isKind)) return undefined;
  const names = new Set(kinds.map((kind) => kind?.confirmation));
  return names.size === kinds.length ? [...(kinds as readonly Possession[])] : undefined;
}

const GATE_NAMES = [...Object.keys(GATE_OPTIONS), 'issuers'];
const ISSUER_NAMES = Object.keys(ISSUER_OPTIONS) as readonly (keyof typeof ISSUER_OPTIONS)[];

/** What only tests and measurements set. */
export interface GateInternals {
  /** Longest pause between two reads of a generation source, in ms. */
  readonly pollMs: number;
  /** Longest time in ms for one response of a generation source. */
  readonly readTimeoutMs: number;
  /** Number of verified tokens to cache, each from its second use on; 0: none. */
  readonly verifiedTokens: number;
  /** Returns a number in [0, 1), which spreads refreshes and retries. */
  readonly random: () => number;
}

const INTERNALS: GateInternals = { pollMs: 5_000, readTimeoutMs: 5_000, verifiedTokens: 5_000, random: Math.random };

/** The dependencies of a gate, with their defaults. */
export type GateDependencies = ValuesOf<typeof DEPENDENCIES> & GateInternals;

/** Checked options of one gate. */
export type GateSettings = ReturnType<typeof readGate> & GateInternals;

/** The options of a gate, and of one issuer, each checked by itself. */
type GateValues = ValuesOf<typeof GATE_OPTIONS>;
type IssuerValues = ValuesOf<typeof ISSUER_OPTIONS>;

/** Checked options of one issuer. */
export type IssuerSettings = ReturnType<typeof readIssuer>;

const SHARED_SECRET = 'a shared secret verifies no token: have the issuer sign with a key pair, whose keys are fetched';

function acceptedAlgorithms(given: unknown): ReturnType<typeof readAlgorithms> {
  const shared: unknown = isList(given) && given.find((one) => typeof one === 'string' && /^HS\d/.test(one));
  if (typeof shared === 'string') {
    throw wrong(`option "algorithms" must be ${SOME_ALGORITHMS}, got ${JSON.stringify(shared)}: ${SHARED_SECRET}`);
  }
  return readAlgorithms(given);
}

/**
 * Checks the options of `authenticate()`.
 *
 * @throws TypeError naming the option, what was got and what is expected.
 */
export function readGateOptions(given: AuthenticateOptions, internals: Partial<GateInternals> = {}): GateSettings {
  return { ...readGate(given), ...INTERNALS, ...internals };
}

function readGate(given: AuthenticateOptions) {
  if (attempt(() => Object.hasOwn(given, 'secret'))) throw wrong(`unknown option "secret"; ${SHARED_SECRET}`);
  const values = readOptions(FACTORY, given, GATE_OPTIONS, { alsoKnown: ['issuers', ...ISSUER_NAMES] });
  const { optional, resource, possession, possessionRequired, exposeReasons } = values;
  if (possessionRequired && possession.length === 0) {
    throw wrong('option "possessionRequired" needs "possession": the kinds of proof, one of which is required');
  }
  return {
    ...values,
    /** Schemes of their own with which tokens may come. */
    challenges: possession.flatMap((kind) => kind.challenge({ resource }) ?? []),
    issuers: readIssuers(given, values),
    unguarded: values.unguarded ?? (optional ? 'allow' : 'warn'),
    exposeReasons: exposeReasons ?? process.env['NODE_ENV'] !== 'production',
  };
}

function readIssuers(given: AuthenticateOptions, gate: GateValues): readonly IssuerSettings[] {
  if (!Object.hasOwn(given, 'issuers')) return [readIssuer(given, gate, GATE_NAMES)];
  const { issuers } = given as { readonly issuers?: unknown };
  const stray = ISSUER_NAMES.find((name) => Object.hasOwn(given, name) && Reflect.get(given, name) !== undefined);
  if (stray) throw wrong(`option "${stray}" goes into each entry of "issuers", not next to it`);
  if (!isList(issuers) || issuers.length === 0) {
    return refuseOption({ factory: FACTORY, name: 'issuers' }, 'an array of at least one issuer', issuers);
  }
  const settings = issuers.map((issuer) => readIssuer(issuer, gate));
  if (new Set(settings.map(({ issuer }) => issuer)).size < settings.length) {
    throw wrong('option "issuers" names one issuer twice');
  }
  // An opaque token does not say who issued it, and the issuers must not get each other's tokens.
  if (settings.filter(({ opaque }) => opaque).length > 1) {
    throw wrong('option "opaque" is accepted for one of the "issuers" only');
  }
  return settings;
}

function readIssuer(given: unknown, gate: GateValues, alsoKnown: readonly string[] = []) {
  const values: IssuerValues = readOptions(FACTORY, given, ISSUER_OPTIONS, { alsoKnown });
  const { audience: _audience, clockToleranceSeconds, maxTokenAgeSeconds, ...plain } = values;
  const checkUrl = urlCheck(FACTORY, gate.allowHttp);
  checkUrls(values, checkUrl);
  requireClients(values);
  const presetChoice = presetOf(values.issuer, values.preset);
  const preset: Preset = PRESETS[presetChoice.name];
  const { generationClaim = preset.stampedClaim } = values;
  const generationPath = readClaimPath(generationClaim);
  return {
    ...plain,
    keyStore: gate.keyStore,
    confirmations: gate.possession.map(({ confirmation }) => confirmation),
    /** Throws a TypeError for a URL without TLS. */
    checkUrl,
    authUrl: values.authUrl ?? values.issuer,
    preset,
    presetChoice,
    ...audiencesOf(values, preset),
    /** Name of the claim, and where it is; `undefined`: the check is off. */
    generationClaim: generationPath?.join('.'),
    generationPath,
    /** Whether a token without that claim is compared by `iat`: where no option names the claim. */
    elseIat: values.generationClaim === undefined,
    clockToleranceMs: 1000 * clockToleranceSeconds,
    maxTokenAgeMs: 1000 * maxTokenAgeSeconds,
  };
}

/** Their accounts are anybody's, and get tokens with any `aud`. */
const SIGN_FOR_EVERYBODY = ['token.actions.githubusercontent.com', 'gitlab.com', 'accounts.google.com'];

function requireClients({ issuer, clientIds }: IssuerValues): void {
  const host = parseUrl(issuer)?.hostname ?? issuer;
  if (clientIds || !SIGN_FOR_EVERYBODY.includes(host)) return;
  const why = `${host} signs tokens for everybody, with any aud: name the accepted callers, such as "sub:<sub of yours>"`;
  throw wrong(`option "clientIds" is required for this issuer: ${why}`);
}

/** With given keys nothing is fetched from the issuer, so its name need not be a URL. */
function checkUrls(values: IssuerValues, checkUrl: ReturnType<typeof urlCheck>): void {
  const { issuer, authUrl, jwksUri, keys, opaque, generationSource } = values;
  if (keys && jwksUri !== undefined) throw wrong('give "keys" or "jwksUri", not both');
  if (jwksUri !== undefined) checkUrl(jwksUri, 'jwksUri');
  if (opaque?.url !== undefined) checkUrl(opaque.url, 'opaque.url');
  const isDiscovered = (!keys && jwksUri === undefined) || (opaque && opaque.url === undefined);
  if (isDiscovered) checkUrl(authUrl ?? issuer, authUrl === undefined ? 'issuer' : 'authUrl');
  // Schemes have no case (RFC 3986 section 3.1): "HTTP:" does not bypass the check.
  if (typeof generationSource === 'string' && /^https?:/i.test(generationSource)) {
    checkUrl(generationSource, 'generationSource');
  }
}

/**
 * The audiences of JWTs, and those of opaque tokens. `false` is for presets whose issuers can leave `aud` out, and for the
 * introspection responses of an issuer without JWTs, where `clientIds` says who may call; then no JWT is accepted.
 */
function audiencesOf({ audience, clientIds, keys, opaque }: IssuerValues, preset: Preset) {
  const { audienceCanBeAbsent } = preset;
  if (audience === false && audienceCanBeAbsent) return { audiences: false, opaqueAudiences: false } as const;
  const list = isList(keys) ? keys : (keys as { readonly keys?: readonly object[] } | undefined)?.keys;
  const isWithoutKeys = clientIds && opaque && list?.length === 0;
  if (audience === false && isWithoutKeys) return { audiences: [], opaqueAudiences: false } as const;
  const at = { factory: FACTORY, name: 'audience' };
  const orFalse = audienceCanBeAbsent ? ', or false to accept tokens without one' : opaque ? FALSE_FOR_OPAQUE : '';
  const audiences = readStrings(audience) ?? refuseOption(at, `${AUDIENCE}${orFalse}`, audience);
  return { audiences, opaqueAudiences: audiences };
}

const FALSE_FOR_OPAQUE = ', or false with clientIds and keys: [] for opaque tokens without one';

function wrong(what: string): TypeError {
  return new TypeError(`${FACTORY}(): ${what}`);
}

/**
 * Makes the check of URLs that keys and floors come from: TLS, or loopback (RFC 8725 section 3.10, RFC 8414
 * section 2). It throws a TypeError.
 */
function urlCheck(factory: string, allowHttp: boolean): (url: string, what: string) => void {
  return function checkUrl(url, what) {
    const at = { factory, name: what };
    if (!isHttpUrl(url)) refuseOption(at, 'an absolute https: URL', url);
    // Only a generation source has credentials in its URL.
    if (what !== 'generationSource' && hasUserInfo(url)) refuseOption(at, 'a URL without user name and password', url);
    if (!allowHttp && !isSecureUrl(url)) {
      refuseOption(at, 'https: (http: is accepted on loopback only, or with allowHttp: true)', url);
    }
  };
}

/** One non-empty string or several, as an array; `undefined` for anything else. */
export function readStrings(value: unknown): readonly string[] | undefined {
  const strings: unknown = typeof value === 'string' ? [value] : value;
  const fits = isList(strings) && strings.length > 0 && strings.every((one) => typeof one === 'string' && one);
  return fits ? [...(strings as readonly string[])] : undefined;
}
