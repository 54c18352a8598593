import { AuthError } from '../../core/errors';
import type { Clock, Schedule } from '../../core/clock';
import { ownMembers } from '../../core/objects';
import { option } from '../../core/options';
import type { TableOf } from '../../core/options';
import { clientAuthorization, loggableUrl } from '../../core/urls';
import { matching, url } from '../../core/variables';
import { Exchanges, FetchError, fetchObject, unlessAborted } from '../http';
import { discoverEndpoint } from '../keys/fetch-keys';
import type { DiscoveryOptions } from '../keys/fetch-keys';
import { freezeJson } from '../strict-json';
import type { JsonObject } from '../strict-json';
import { claimsCheck, isBoundByDpop } from '../verify';
import type { ClaimRules, ClaimsCheck } from '../verify';

/** How the authorization server is asked about opaque tokens (RFC 7662). */
export interface OpaqueOptions {
  /** URL of the introspection endpoint. Default: `introspection_endpoint` of the issuer's metadata. */
  readonly url?: string | undefined;
  /** Client id of this API at the authorization server. */
  readonly clientId: string;
  /** Its secret, sent by HTTP Basic (RFC 6749 section 2.3.1). */
  readonly clientSecret: string;
  /** How long in ms a token counts as active without being asked about again; 0: not at all. Default 30000, at most 300000. */
  readonly cacheMs?: number | undefined;
}

/** The option `opaque` of `authenticate()`. Its messages do not quote the secret. */
export const OPAQUE_OPTION = option.nested({
  url: option.variable('TILLGATE_INTROSPECTION_URL', option.string(), {
    ...url({ query: true }),
    fallback: { words: 'discovered' },
    example: 'https://login.example.com/connect/introspect',
  }),
  clientId: option.variable(
    'TILLGATE_INTROSPECTION_CLIENT_ID',
    option.required(option.string(), 'the id of a client of the authorization server'),
    {
      ...matching(/^\P{Cc}+$/u, 'a client id without control characters'),
      fallback: { words: 'opaque tokens are refused' },
      example: 'orders-api',
    },
  ),
  clientSecret: option.variable('TILLGATE_INTROSPECTION_CLIENT_SECRET', option.required(option.secret(1)), {
    ...matching(/^\P{Cc}+$/u, 'a client secret without line breaks or other control characters'),
    fallback: { words: 'none' },
    example: '"$(cat secret-file)"',
  }),
  cacheMs: option.number({ unit: 'milliseconds', min: 0, max: 300_000 }, 30_000),
} satisfies TableOf<OpaqueOptions>);

/** How long a URL from the metadata is used before it is looked up again. */
const URL_MAX_AGE_MS = 600_000;
/** For one look at the metadata. */
const LOOKUP_TIMEOUT_MS = 5_000;

/** The endpoint, and the client that calls it. */
interface EndpointOptions extends Omit<DiscoveryOptions, 'signal'>, Pick<OpaqueOptions, 'clientId' | 'clientSecret'> {
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
  const { url: given, clientId, clientSecret } = options;
  const headers = ownMembers({ authorization: clientAuthorization(clientId, clientSecret) });
  const find = given === undefined ? endpointFinder(options) : () => given;

  return async function askAbout(token, signal) {
    const url = await find(signal);
    const form = new URLSearchParams({ token, token_type_hint: 'access_token' });
    const response = await fetchObject(url, { ...options, signal, headers, form });
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
 *
 * @param canLackClient - accepts a response without a client id (optional in RFC 7662 section 2.2), whose client is then called
 *   `sub:<sub>`: the name of a user alone could be that of a client
 */
export function introspectedClaimsCheck(rules: ClaimRules, canLackClient: boolean, clock: Clock): ClaimsCheck {
  const { preset, issuer } = rules;
  const clientIdClaims = [...new Set([...preset.clientIdClaims, 'client_id'])];
  const relaxed = { ...rules, preset: { ...preset, clientIdClaims, requiredClaims: [], fixedClaims: [] } };
  const verifyClaims = claimsCheck(relaxed, clock);

  /** The claims with the name of their client, for the check only. */
  function withClient(claims: JsonObject): JsonObject {
    const { sub } = claims;
    if (clientIdClaims.some((name) => claims[name] !== undefined)) return claims;
    if (!canLackClient || typeof sub !== 'string' || sub === '') throw new AuthError('invalid_claims', WITHOUT_CLIENT);
    return ownMembers({ ...claims, client_id: `sub:${sub}` });
  }

  return function verifyIntrospected(given) {
    for (const member of KIND_MEMBERS) checkKind(given[member], given);
    const claims = 'iss' in given ? given : ownMembers({ iss: issuer, ...given });
    return { ...verifyClaims(withClient(claims)), claims: freezeJson(claims) };
  };
}

const WITHOUT_CLIENT = {
  privateDetail:
    'the introspection response has no client_id: have the authorization server return it (optional in RFC 7662); with ' +
    'generationClaim: false and without clientIds, sub is enough',
};

/** RFC 9449 section 6.2: a token of type DPoP is bound to a key, which its `cnf` names. Without one no proof can be checked. */
function checkKind(kind: unknown, claims: JsonObject): void {
  if (kind === undefined) return;
  const name = typeof kind === 'string' ? kind.toLowerCase() : undefined;
  if (name === 'dpop') {
    if (isBoundByDpop(claims)) return;
    throw new AuthError('sender_constrained', { privateDetail: 'the token is of type DPoP, and cnf.jkt is missing' });
  }
  if (name === undefined || !ACCESS_TOKEN_KINDS.includes(name)) {
    throw new AuthError('wrong_type', { privateDetail: 'the introspection response is about another kind of token' });
  }
}
