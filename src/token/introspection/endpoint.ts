import { createPrivateKey, randomUUID } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { AuthError } from '../../core/errors';
import type { Clock, Schedule } from '../../core/clock';
import { attempt, isObject, ownMembers } from '../../core/objects';
import { isList, option } from '../../core/options';
import type { Dependencies, TableOf } from '../../core/options';
import { clientAuthorization, loggableUrl } from '../../core/urls';
import { Exchanges, FetchError, fetchObject, unlessAborted } from '../http';
import type { Fetch } from '../http';
import { discoverEndpoint } from '../keys/fetch-keys';
import type { DiscoveryOptions } from '../keys/fetch-keys';
import { ALGORITHMS, isCompatible, signText } from '../signature';
import type { Algorithm } from '../signature';
import type { JsonObject } from '../strict-json';
import { bindingsOf, claimsVerifier } from '../verify';
import type { ClaimRules, ClaimsVerifier } from '../verify';

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
export const INTROSPECTION_OPTION = option.nested(
  {
    url: option.string(),
    clientId: option.required(option.string(), 'the id of a client of the authorization server'),
    clientSecret: option.secret(1),
    privateKey: option(SIGNING_KEY, (given, { factory, name }) => {
      const key = readSigningKey(given);
      if (!key) throw new TypeError(`${factory}(): option "${name}" must be ${SIGNING_KEY}`);
      return key;
    }),
    fetch: option.callable<Fetch | undefined>(),
    tokens: option.oneOf(['opaque', 'all'], 'opaque'),
    acceptWithout: option(`an array with some of ${OPTIONAL_MEMBERS.join(', ')}`, readOptionalMembers, NONE),
    cacheMs: option.number({ unit: 'milliseconds', min: 0, max: 300_000 }, 30_000),
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
type IntrospectionSettings = NonNullable<ReturnType<typeof INTROSPECTION_OPTION.read>>;

/** The private key of this API at the authorization server. */
export interface SigningKey {
  readonly key: KeyObject;
  readonly algorithm: Algorithm;
  readonly keyId: string | undefined;
}

/** As whom the endpoint is asked. Without a secret and a key, the client certificate of the connection says it. */
interface ClientCredential {
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  readonly signingKey?: SigningKey | undefined;
}

/** How long an assertion is valid; each one is sent once. */
const ASSERTION_SECONDS = 60;
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
/** Without `alg` in the key the first one that fits is used. */
const PREFERRED: readonly Algorithm[] = ['ES256', 'ES384', 'ES512', 'EdDSA', 'RS256', 'PS256'];

/**
 * Reads a private key (RFC 7517) for `private_key_jwt`.
 *
 * @returns `undefined` for anything else; no error of Node is passed on, because it could quote the key
 */
function readSigningKey(jwk: unknown): SigningKey | undefined {
  if (!isObject(jwk)) return undefined;
  const members = ownMembers(jwk);
  const { alg, kid } = members;
  if (kid !== undefined && typeof kid !== 'string') return undefined;
  const key = attempt(() => createPrivateKey(ownMembers({ key: members, format: 'jwk' as const })));
  if (!key) return undefined;
  const candidates = alg === undefined ? PREFERRED : ALGORITHMS.filter((known) => known === alg);
  const algorithm = candidates.find((candidate) => isCompatible(key, candidate));
  return algorithm && { key, algorithm, keyId: kid };
}

/**
 * Makes the function that authenticates each request (RFC 6749 section 2.3.1, RFC 7523 section 2.2, RFC 8705 section 2): by
 * a header, or by further members of the form.
 */
function clientAuthentication(
  { clientId, clientSecret, signingKey }: ClientCredential,
  issuer: string,
  clock: Clock,
): () => Promise<{ readonly headers?: { readonly authorization: string }; readonly form?: Record<string, string> }> {
  if (signingKey) {
    return async () => {
      const client_assertion = await signAssertion(signingKey, { clientId, issuer, nowMs: clock() });
      return { form: { client_assertion_type: ASSERTION_TYPE, client_assertion } };
    };
  }
  // RFC 8705 section 2: the id in the form says which client the certificate has to be of.
  if (clientSecret === undefined) return () => Promise.resolve({ form: { client_id: clientId } });
  const headers = { authorization: clientAuthorization(clientId, clientSecret) };
  return () => Promise.resolve({ headers });
}

/** A JWT that only the issuer accepts, and only once (RFC 7523 section 3). Signed off the main thread: tokens can come in a flood. */
async function signAssertion(
  { key, algorithm, keyId }: SigningKey,
  { clientId, issuer, nowMs }: { readonly clientId: string; readonly issuer: string; readonly nowMs: number },
): Promise<string> {
  const iat = Math.floor(nowMs / 1000);
  const claims = { iss: clientId, sub: clientId, aud: issuer, jti: randomUUID(), iat, exp: iat + ASSERTION_SECONDS };
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  const input = `${encode({ alg: algorithm, typ: 'JWT', kid: keyId })}.${encode(claims)}`;
  return `${input}.${(await signText(input, key, algorithm)).toString('base64url')}`;
}

/** How long a URL from the metadata is used before it is looked up again. */
const URL_MAX_AGE_MS = 600_000;
/** For one look at the metadata. */
const LOOKUP_TIMEOUT_MS = 5_000;

/** Where and as whom the endpoint is asked. */
interface EndpointOptions extends Omit<DiscoveryOptions, 'signal'>, ClientCredential {
  /** URL of the endpoint. Default: from the issuer's metadata. */
  readonly url: string | undefined;
  readonly clock: Clock;
  readonly schedule: Schedule;
}

/**
 * Makes the function that asks the introspection endpoint about a token (RFC 7662 section 2). It returns the response, or
 * `undefined` when the token is not active, and rejects with a FetchError.
 */
export function introspectionEndpoint(
  options: EndpointOptions,
): (token: string, signal: AbortSignal) => Promise<JsonObject | undefined> {
  const { url: given, issuer, clock } = options;
  const authenticate = clientAuthentication(options, issuer, clock);
  const find = given === undefined ? endpointFinder(options) : () => given;

  return async function askAbout(token, signal) {
    const url = await find(signal);
    const { headers, form } = ownMembers(await authenticate());
    const request = new URLSearchParams({ token, token_type_hint: 'access_token', ...form });
    const response = await fetchObject(url, { ...options, signal, headers, form: request });
    if (response['active'] === false) return undefined;
    if (response['active'] === true) return response;
    throw new FetchError(`${loggableUrl(url)} did not say whether the token is active`, { status: 200 });
  };
}

/** Finds the endpoint in the metadata. Calls share one lookup, and do not wait for one while a URL is known. */
function endpointFinder(options: EndpointOptions): (signal: AbortSignal) => Promise<string> {
  const { clock, authUrl } = options;
  const exchanges = new Exchanges(options.schedule);
  let known: string | undefined;
  let lookup: Promise<string> | undefined;
  let lookedUpMs = -Infinity;

  function isRecent(): boolean {
    const ageMs = clock() - lookedUpMs;
    return ageMs >= 0 && ageMs < URL_MAX_AGE_MS;
  }

  async function lookUp(): Promise<string> {
    lookedUpMs = clock();
    try {
      // A time limit of its own: that of the first call which waits must not end the lookup for the others.
      return (known = await exchanges.run(LOOKUP_TIMEOUT_MS, (signal) =>
        discoverEndpoint('introspection_endpoint', { ...options, signal }),
      ));
    } finally {
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

/**
 * Makes the check of introspection responses: that of the claims of a JWT, except that `iss` may be missing, because the
 * issuer itself responded, and that the members which only some servers return (`sub`, `jti`) may be.
 */
export function introspectedClaimsVerifier(
  rules: ClaimRules,
  acceptWithout: IntrospectionSettings['acceptWithout'],
  clock: Clock,
): ClaimsVerifier {
  const { preset, issuer, maxTokenAgeMs } = rules;
  const clientIdClaims = [...preset.clientIdClaims, 'client_id'];
  const relaxed = { ...rules, preset: { ...preset, clientIdClaims, requiredClaims: [], fixedClaims: [] } };
  const verifyClaims = claimsVerifier(relaxed, clock);
  const verifyWithoutAudience = claimsVerifier({ ...relaxed, audiences: false }, clock);

  /** The claims with what stands for the times that may be missing; for the check only. */
  function withTimes(claims: JsonObject): JsonObject {
    const isMissing = (name: 'exp' | 'iat'): boolean => acceptWithout.includes(name) && claims[name] === undefined;
    if (!isMissing('iat') && !isMissing('exp')) return claims;
    const { iat = isMissing('iat') ? clock() / 1000 : undefined } = claims;
    const canExpire = isMissing('exp') && typeof iat === 'number';
    return ownMembers({ ...claims, iat, ...(canExpire && { exp: iat + maxTokenAgeMs / 1000 }) });
  }

  return function verifyIntrospected(given) {
    checkKinds(given);
    const claims = 'iss' in given ? given : Object.freeze(ownMembers({ iss: issuer, ...given }));
    const hasAudience = 'aud' in claims || !acceptWithout.includes('aud');
    const verified = (hasAudience ? verifyClaims : verifyWithoutAudience)(withTimes(claims));
    return { ...verified, claims };
  };
}

/** Makes the check of a JWT that its issuer was asked about: its own claims, and those that only the response has. */
export function confirmedClaimsVerifier(verifyClaims: ClaimsVerifier): ClaimsVerifier {
  return function verifyConfirmed(claims) {
    checkKinds(claims);
    return verifyClaims(claims);
  };
}

function checkKinds(claims: JsonObject): void {
  for (const member of KIND_MEMBERS) checkKind(claims[member], claims);
}

/** RFC 9449 section 6.2: a token of type DPoP is bound to a key, which its `cnf` names. Without one no proof can be checked. */
function checkKind(kind: unknown, claims: JsonObject): void {
  if (kind === undefined) return;
  const name = typeof kind === 'string' ? kind.toLowerCase() : undefined;
  if (name === 'dpop') {
    if (bindingsOf(claims).key !== undefined) return;
    throw new AuthError('sender_constrained', { privateDetail: 'the token is of type DPoP, and cnf.jkt is missing' });
  }
  if (name === undefined || !ACCESS_TOKEN_KINDS.includes(name)) {
    throw new AuthError('wrong_type', { privateDetail: 'the introspection response is about another kind of token' });
  }
}
