import type { Clock, Schedule } from '../../core/clock';
import { AuthError } from '../../core/auth-error';
import { ownMembers, ownValue } from '../../core/objects';
import { readOptions } from '../../core/options';
import { loggableUrl } from '../../core/urls';
import type { ClaimRules } from '../claims';
import { discoverEndpoint } from '../keys/discovery';
import type { DiscoveryOptions } from '../keys/discovery';
import { fetchJson, FetchError, unlessAborted } from '../keys/fetch-json';
import { parseJsonObject } from '../strict-json';
import { claimsVerifier } from '../verify';
import type { ClaimsVerifier } from '../verify';

/** How the authorization server is asked about opaque tokens (RFC 7662). */
export interface IntrospectionOptions {
  /** URL of the introspection endpoint. Default: `introspection_endpoint` of the issuer's metadata. */
  readonly url?: string | undefined;
  /** Client credential of this API at the authorization server; sent by HTTP Basic (RFC 6749 section 2.3.1). */
  readonly clientId: string;
  /** Its secret. */
  readonly clientSecret: string;
  /** How long in ms a token counts as active without being asked about again; 0: not at all. Default 30000, at most 300000. */
  readonly cacheMs?: number | undefined;
}

/** Checked options. */
export interface IntrospectionSettings {
  readonly url: string | undefined;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly cacheMs: number;
}

/**
 * Checks the option `introspection` of `authenticate()`.
 *
 * @throws TypeError that does not quote the secret
 */
export function readIntrospection(
  options: IntrospectionOptions,
  checkUrl: (url: string, what: string) => void,
): IntrospectionSettings {
  const names = ['url', 'clientId', 'clientSecret', 'cacheMs'] as const;
  const read = readOptions('authenticate', options, names, 'introspection');
  const { clientSecret } = ownMembers(options);
  const url = read.string('url');
  if (url !== undefined) checkUrl(url, 'introspection.url');
  if (typeof clientSecret !== 'string' || clientSecret === '') {
    throw new TypeError('authenticate(): option "introspection.clientSecret" must be a non-empty string');
  }
  return {
    url,
    clientId: read.string('clientId') ?? read.refuse('clientId', 'the id of a client of the authorization server'),
    clientSecret,
    cacheMs: read.number('cacheMs', 30_000, { unit: 'milliseconds', min: 0, max: 300_000 }),
  };
}

/** The members of a response about an active token. */
export type Claims = Readonly<Record<string, unknown>>;

/** Asks about one token: its claims, or `undefined` when it is not active. Rejects with a FetchError. */
export type AskAbout = (token: string, signal: AbortSignal) => Promise<Claims | undefined>;

/** Where and as whom the endpoint is asked. */
export interface EndpointOptions extends Omit<DiscoveryOptions, 'signal'> {
  /** URL of the endpoint. Default: from the issuer's metadata. */
  readonly url: string | undefined;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly clock: Clock;
  readonly schedule: Schedule;
}

/** How long a URL from the metadata is used before it is looked up again. */
const URL_MAX_AGE_MS = 600_000;
/** For one look at the metadata. */
const LOOKUP_TIMEOUT_MS = 5_000;

/** Makes the function that asks the introspection endpoint (RFC 7662 section 2). */
export function introspectionEndpoint(options: EndpointOptions): AskAbout {
  const { url: given, clientId, clientSecret } = options;
  const credentials = `${formEncode(clientId)}:${formEncode(clientSecret)}`;
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  const find = given === undefined ? endpointFinder(options) : () => given;

  return async function askAbout(token, signal) {
    const url = await find(signal);
    const body = new URLSearchParams({ token, token_type_hint: 'access_token' }).toString();
    const response = await fetchJson(url, {
      ...options,
      signal,
      parse: parseJsonObject,
      form: { body, authorization },
    });
    const active = ownValue(response, 'active');
    if (active === false) return undefined;
    if (active === true) return response;
    throw new FetchError(`${loggableUrl(url)} did not say whether the token is active`, { status: 200 });
  };
}

/** Finds the endpoint in the metadata. Calls share one lookup, and do not wait for one while a URL is known. */
function endpointFinder(options: EndpointOptions): (signal: AbortSignal) => Promise<string> {
  const { clock, schedule, authUrl } = options;
  let known: string | undefined;
  let lookup: Promise<string> | undefined;
  let lookedUpMs = -Infinity;

  function isRecent(): boolean {
    const ageMs = clock() - lookedUpMs;
    return ageMs >= 0 && ageMs < URL_MAX_AGE_MS;
  }

  async function lookUp(): Promise<string> {
    // A time limit of its own: that of the first call which waits must not end the lookup for the others.
    const exchange = new AbortController();
    const giveUp = (): void => exchange.abort(`did not respond within ${LOOKUP_TIMEOUT_MS} ms`);
    const deadline = schedule(giveUp, LOOKUP_TIMEOUT_MS);
    lookedUpMs = clock();
    try {
      return (known = await discoverEndpoint('introspection_endpoint', { ...options, signal: exchange.signal }));
    } finally {
      deadline.cancel();
      lookup = undefined;
    }
  }

  return function find(signal) {
    if (known !== undefined && isRecent()) return Promise.resolve(known);
    lookup ??= lookUp();
    if (known === undefined) return unlessAborted(signal, `the metadata of ${loggableUrl(authUrl)}`, lookup);
    // While the metadata cannot be fetched, the last URL is used.
    lookup.catch(() => undefined);
    return Promise.resolve(known);
  };
}

/** RFC 6749 section 2.3.1: id and secret are form-encoded before they are joined. */
function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

/**
 * Members in which servers name the kind of a token: `token_type` (RFC 7662 section 2.2), `token_use` (Ory Hydra), `typ`
 * (Keycloak). Some respond about refresh tokens too.
 */
const KIND_MEMBERS = ['token_type', 'token_use', 'typ'];
const ACCESS_TOKEN_KINDS = ['bearer', 'access_token', 'access', 'at+jwt'];

/**
 * Makes the check of introspection responses: that of the claims of a JWT, except that `iss` may be missing, because the
 * issuer itself responded, and that the members which only some servers return (`sub`, `jti`) may be.
 */
export function introspectedClaimsVerifier(rules: ClaimRules, clock: Clock): ClaimsVerifier {
  const { preset, issuer } = rules;
  const clientIdClaims = [...preset.clientIdClaims, 'client_id'];
  const verifyClaims = claimsVerifier(
    { ...rules, preset: { ...preset, clientIdClaims, requiredClaims: [], fixedClaims: {} } },
    clock,
  );
  return function verifyIntrospected({ claims }) {
    for (const member of KIND_MEMBERS) checkKind(ownValue(claims, member), claims);
    return verifyClaims({ claims: Object.hasOwn(claims, 'iss') ? claims : { iss: issuer, ...claims } });
  };
}

/** RFC 9449 section 6.2: a token of type DPoP is bound to a key, which its `cnf` names. Without one no proof can be checked. */
function checkKind(kind: unknown, claims: Claims): void {
  if (kind === undefined) return;
  const name = typeof kind === 'string' ? kind.toLowerCase() : undefined;
  if (name === 'dpop') {
    if (ownValue(ownValue(claims, 'cnf'), 'jkt') !== undefined) return;
    throw new AuthError('sender_constrained', { privateDetail: 'the token is of type DPoP, and cnf.jkt is missing' });
  }
  if (name === undefined || !ACCESS_TOKEN_KINDS.includes(name)) {
    throw new AuthError('wrong_type', { privateDetail: 'the introspection response is about another kind of token' });
  }
}
