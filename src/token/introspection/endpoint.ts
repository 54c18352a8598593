import type { Dependencies } from '../../core/dependencies';
import type { Clock, Schedule } from '../../core/clock';
import { AuthError } from '../../core/auth-error';
import { ownValue } from '../../core/objects';
import { callable, isList, nested, number, oneOf, option, required, secret, string } from '../../core/options';
import type { TableOf } from '../../core/options';
import { loggableUrl } from '../../core/urls';
import type { ClaimRules } from '../claims';
import { discoverEndpoint } from '../keys/discovery';
import type { DiscoveryOptions } from '../keys/discovery';
import { fetchJson, FetchError, unlessAborted } from '../keys/fetch-json';
import type { Fetch } from '../keys/fetch-json';
import { freezeDeep, parseJsonObject } from '../strict-json';
import { claimsVerifier } from '../verify';
import type { ClaimsVerifier } from '../verify';
import { clientAuthentication, readSigningKey } from './client-authentication';
import type { ClientCredential } from './client-authentication';

/** How the authorization server is asked about tokens (RFC 7662). */
export type IntrospectionOptions = {
  /** URL of the introspection endpoint. Default: `introspection_endpoint` of the issuer's metadata. */
  readonly url?: string | undefined;
  /** Client id of this API at the authorization server. */
  readonly clientId: string;
  /** Which tokens are asked about: those that are not JWTs (`'opaque'`, the default), or `'all'`, JWTs after their signature. */
  readonly tokens?: 'opaque' | 'all' | undefined;
  /**
   * Members that may be missing in a response (RFC 7662 section 2.2), though the gate requires them otherwise. Without `exp`
   * a token expires `maxTokenAgeSeconds` after it was issued; `iat` only where the generation check is off. Default: none.
   */
  readonly acceptWithout?: readonly ('aud' | 'exp' | 'iat')[] | undefined;
  /** How long in ms a token counts as active without being asked about again; 0: not at all. Default 30000, at most 300000. */
  readonly cacheMs?: number | undefined;
} & (
  | {
      /** Secret of the client; sent by HTTP Basic (RFC 6749 section 2.3.1). */
      readonly clientSecret: string;
      readonly privateKey?: undefined;
      readonly fetch?: undefined;
    }
  | {
      /** Private key of the client as a JWK, with `kid` and `alg` if the server needs them: `private_key_jwt` (RFC 7523). */
      readonly privateKey: object;
      readonly clientSecret?: undefined;
      readonly fetch?: undefined;
    }
  | {
      /** A `fetch` whose connections present the client's certificate (RFC 8705 section 2). */
      readonly fetch: NonNullable<Dependencies['fetch']>;
      readonly clientSecret?: undefined;
      readonly privateKey?: undefined;
    }
);

/** Members that RFC 7662 section 2.2 makes optional. */
const OPTIONAL_MEMBERS = ['aud', 'exp', 'iat'] as const;

type OptionalMember = (typeof OPTIONAL_MEMBERS)[number];

const NONE: readonly OptionalMember[] = [];

const SIGNING_KEY = 'a private JWK for RS, PS, ES or EdDSA signatures';

function readOptionalMembers(given: unknown): readonly OptionalMember[] | undefined {
  const fits = isList(given) && given.every((name) => OPTIONAL_MEMBERS.includes(name as OptionalMember));
  return fits ? [...(given as readonly OptionalMember[])] : undefined;
}

/** The option `introspection` of `authenticate()`. Its messages quote neither secret nor key. */
export const INTROSPECTION_OPTION = nested(
  {
    url: string(),
    clientId: required(string(), 'the id of a client of the authorization server'),
    clientSecret: secret(1),
    privateKey: option(SIGNING_KEY, (given, { factory, name }) => {
      const key = readSigningKey(given);
      if (!key) throw new TypeError(`${factory}(): option "${name}" must be ${SIGNING_KEY}`);
      return key;
    }),
    fetch: callable<Fetch | undefined>(),
    tokens: oneOf(['opaque', 'all'], 'opaque'),
    acceptWithout: option(`an array with some of ${OPTIONAL_MEMBERS.join(', ')}`, readOptionalMembers, NONE),
    cacheMs: number({ unit: 'milliseconds', min: 0, max: 300_000 }, 30_000),
  } satisfies TableOf<IntrospectionOptions>,
  ({ privateKey, fetch, ...introspection }, { factory }) => {
    const credentials = { clientSecret: introspection.clientSecret, privateKey, fetch };
    const [first, second] = Object.entries(credentials).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    if (second !== undefined) {
      throw new TypeError(`${factory}(): give "introspection.${first}" or "introspection.${second}", not both`);
    }
    if (first === undefined) {
      throw new TypeError(`${factory}(): option "introspection.clientSecret" must be a non-empty string`);
    }
    // `certifiedFetch` presents the client's certificate; `undefined`: the client has a secret or a key.
    return { ...introspection, signingKey: privateKey, certifiedFetch: fetch };
  },
);

/** Checked options. */
export type IntrospectionSettings = NonNullable<ReturnType<typeof INTROSPECTION_OPTION.read>>;

/** The members of a response about an active token. */
export type Claims = Readonly<Record<string, unknown>>;

/** Asks about one token: its claims, or `undefined` when it is not active. Rejects with a FetchError. */
export type AskAbout = (token: string, signal: AbortSignal) => Promise<Claims | undefined>;

/** Where and as whom the endpoint is asked. */
export interface EndpointOptions extends Omit<DiscoveryOptions, 'signal'>, ClientCredential {
  /** URL of the endpoint. Default: from the issuer's metadata. */
  readonly url: string | undefined;
  readonly clock: Clock;
  readonly schedule: Schedule;
}

/** How long a URL from the metadata is used before it is looked up again. */
const URL_MAX_AGE_MS = 600_000;
/** For one look at the metadata. */
const LOOKUP_TIMEOUT_MS = 5_000;

/** Makes the function that asks the introspection endpoint (RFC 7662 section 2). */
export function introspectionEndpoint(options: EndpointOptions): AskAbout {
  const { url: given, issuer, clock } = options;
  const authenticate = clientAuthentication(options, issuer, clock);
  const find = given === undefined ? endpointFinder(options) : () => given;

  return async function askAbout(token, signal) {
    const url = await find(signal);
    const { authorization, form } = await authenticate();
    const body = new URLSearchParams({ token, token_type_hint: 'access_token', ...form }).toString();
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

/**
 * Members in which servers name the kind of a token: `token_type` (RFC 7662 section 2.2), `token_use` (Ory Hydra), `typ`
 * (Keycloak). Some respond about refresh tokens too.
 */
const KIND_MEMBERS = ['token_type', 'token_use', 'typ'];
const ACCESS_TOKEN_KINDS = ['bearer', 'access_token', 'access', 'at+jwt'];

/** How responses are read. */
export interface ResponseRules {
  readonly rules: ClaimRules;
  readonly acceptWithout: IntrospectionSettings['acceptWithout'];
  readonly clock: Clock;
}

/**
 * Makes the check of introspection responses: that of the claims of a JWT, except that `iss` may be missing, because the
 * issuer itself responded, and that the members which only some servers return (`sub`, `jti`) may be.
 */
export function introspectedClaimsVerifier({ rules, acceptWithout, clock }: ResponseRules): ClaimsVerifier {
  const { preset, issuer, maxTokenAgeMs } = rules;
  const clientIdClaims = [...preset.clientIdClaims, 'client_id'];
  const relaxed = { ...rules, preset: { ...preset, clientIdClaims, requiredClaims: [], fixedClaims: {} } };
  const verifyClaims = claimsVerifier(relaxed, clock);
  const verifyWithoutAudience = claimsVerifier({ ...relaxed, audiences: false }, clock);

  /** The claims with what stands for the times that may be missing; for the check only. */
  function withTimes(claims: Claims): Claims {
    const isMissing = (name: 'exp' | 'iat'): boolean => acceptWithout.includes(name) && !Object.hasOwn(claims, name);
    const issued = isMissing('iat') ? { ...claims, iat: clock() / 1000 } : claims;
    const { iat } = issued;
    const canExpire = isMissing('exp') && typeof iat === 'number';
    return canExpire ? { ...issued, exp: iat + maxTokenAgeMs / 1000 } : issued;
  }

  return function verifyIntrospected({ claims: given }) {
    checkKinds(given);
    const claims = Object.hasOwn(given, 'iss') ? given : { iss: issuer, ...given };
    const hasAudience = Object.hasOwn(claims, 'aud') || !acceptWithout.includes('aud');
    const verified = (hasAudience ? verifyClaims : verifyWithoutAudience)({ claims: withTimes(claims) });
    return { ...verified, claims: freezeDeep(claims) };
  };
}

/** Makes the check of a JWT that its issuer was asked about: its own claims, and those that only the response has. */
export function confirmedClaimsVerifier(verifyClaims: ClaimsVerifier): ClaimsVerifier {
  return function verifyConfirmed(token) {
    checkKinds(token.claims);
    return verifyClaims(token);
  };
}

function checkKinds(claims: Claims): void {
  for (const member of KIND_MEMBERS) checkKind(ownValue(claims, member), claims);
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
