/** Everything that is ever said about one reason: status, challenge, body, log, metric, docs and advice come from this row. */
export interface ReasonRow {
  readonly status: 400 | 401 | 403 | 429 | 503;
  /**
   * `error` of the challenge (RFC 6750 section 3.1; `access_denied` from RFC 6749 section 4.1.2.1; those of DPoP from RFC 9449
   * section 12.2). Absent where RFC 6750 section 3.1 forbids one (no token), and where nothing is decided about the
   * token.
   */
  readonly error?:
    | 'invalid_request'
    | 'invalid_token'
    | 'insufficient_scope'
    | 'access_denied'
    | 'invalid_dpop_proof'
    | 'use_dpop_nonce';
  readonly title: string;
  /** Public text: constant, printable ASCII, safe in a header (RFC 6750 section 3). */
  readonly detail: string;
  /** The check of a token that fails. Of `possession`, `explain()` knows only whether the token is bound as required. */
  readonly check:
    'structure' | 'header' | 'key' | 'signature' | 'introspection' | 'claims' | 'generation' | 'possession' | 'scope';
  /** What is wrong: the request, its token, its proof of possession, or nothing about the request. */
  readonly about: 'request' | 'token' | 'proof' | 'outage';
  /** `true` if a wrong configuration of the API refuses all tokens for this reason. */
  readonly configuration?: true;
  /** Why the request was refused, in a full sentence. */
  readonly cause: string;
  /** What the developer of the caller does. */
  readonly caller: string;
  /** What the operator of the API does. */
  readonly operator: string;
}

const REQUEST_NEW_TOKEN =
  'Forget the token that was refused, if it is still the current one, request one new token for all calls that wait, and repeat the call once.';
const RETRY_LATER = 'Keep the token and repeat the request after Retry-After.';
const GIVE_REQUEST_ID = 'Give the operator the request_id.';
const RIGHT_SERVER = 'Check that the token comes from the right authorization server.';

const BAD_REQUEST = { status: 400, error: 'invalid_request', check: 'structure', about: 'request' } as const;
const INVALID_TOKEN = { status: 401, error: 'invalid_token', title: 'Invalid access token', about: 'token' } as const;
const INVALID_HEADER = { ...INVALID_TOKEN, check: 'header' } as const;
const WRONG_KEY = { ...INVALID_TOKEN, check: 'key' } as const;
const INVALID_CLAIMS = { ...INVALID_TOKEN, check: 'claims' } as const;
const UNEXPECTED_CLAIMS = { ...INVALID_CLAIMS, configuration: true } as const;
const INVALID_GENERATION = { ...INVALID_TOKEN, check: 'generation' } as const;
const PROOF = { check: 'possession', about: 'proof' } as const;
const FORBIDDEN = { status: 403, check: 'scope', about: 'request' } as const;
const OUTAGE = { status: 503, about: 'outage', caller: RETRY_LATER } as const;

const ROWS = {
  missing_token: {
    status: 401,
    title: 'Access token required',
    detail: 'Send an access token in the Authorization header: Authorization: Bearer <ACCESS_TOKEN>.',
    check: 'structure',
    about: 'request',
    cause: 'The request has no access token.',
    caller: 'Send `Authorization: Bearer <ACCESS_TOKEN>` with every request.',
    operator:
      'Check that no proxy removes the Authorization header. The log names another scheme than Bearer, and a cookie or header that holds a token.',
  },
  malformed_authorization: {
    ...BAD_REQUEST,
    title: 'Malformed Authorization header',
    detail: 'Send exactly one Authorization header of the form: Bearer <ACCESS_TOKEN>.',
    cause: 'The Authorization header is not `Bearer`, one space and one token, or there are several.',
    caller: 'Send one header: `Authorization: Bearer <ACCESS_TOKEN>`.',
    operator: 'Check that no proxy adds a second Authorization header.',
  },
  token_in_query: {
    ...BAD_REQUEST,
    title: 'Access token in the query',
    detail: 'Access tokens are accepted in the Authorization header only, not in the query string.',
    cause: 'The access token is in the query of the URL, which logs keep.',
    caller: 'Request a new token, and send it in the Authorization header.',
    operator: 'Remove the URL from the logs of proxies.',
  },
  token_in_body: {
    ...BAD_REQUEST,
    title: 'Access token in the body',
    detail: 'Access tokens are accepted in the Authorization header only, not in a form body.',
    cause: 'The access token is in the form body of the request.',
    caller: 'Send the token in the Authorization header.',
    operator: 'Nothing, unless many callers are affected.',
  },
  malformed_token: {
    ...INVALID_TOKEN,
    detail: 'The access token is not a well-formed JSON Web Token.',
    check: 'structure',
    cause: 'The access token is not a JSON Web Token.',
    caller: 'Send the access_token of the token response unchanged.',
    operator:
      'Check that the authorization server issues signed JWTs for this API; for opaque and encrypted tokens use the option `opaque`.',
  },
  algorithm_not_allowed: {
    ...INVALID_HEADER,
    detail: 'The access token is signed with an algorithm that is not accepted here.',
    cause: 'The access token is signed with an algorithm that this API does not accept.',
    caller: RIGHT_SERVER,
    operator: 'Have the authorization server sign with RS256 or another algorithm of the option `algorithms`.',
  },
  unsupported_critical_header: {
    ...INVALID_HEADER,
    detail: 'The access token carries a header extension that is not supported.',
    cause: 'The header of the access token names a critical extension (`crit`, RFC 7515).',
    caller: RIGHT_SERVER,
    operator: 'Switch the extension off at the authorization server.',
  },
  wrong_type: {
    ...INVALID_HEADER,
    detail: 'The token is of another type: an access token is expected.',
    configuration: true,
    cause: 'The token is not an access token: its `typ` says something else, or it is an ID token.',
    caller: 'Send the access_token of the token response, not the id_token.',
    operator: 'Check that TILLGATE_PRESET names the product that issues the tokens.',
  },
  unknown_key: {
    ...WRONG_KEY,
    detail: 'The access token is signed with a key that its issuer does not publish.',
    cause: 'The issuer does not publish the key that the access token names.',
    caller: REQUEST_NEW_TOKEN,
    operator: 'If new tokens are refused too, TILLGATE_JWKS_URI belongs to another server, realm or stage.',
  },
  unusable_key: {
    ...WRONG_KEY,
    detail: 'The access token is signed with a key that must not be used for access tokens.',
    cause:
      'The issuer publishes the key that the access token names, but it must not be used: it is too short, broken, private, or meant for something else.',
    caller: GIVE_REQUEST_ID,
    operator: 'The log says which key and why.',
  },
  bad_signature: {
    ...INVALID_TOKEN,
    detail: 'The signature of the access token is not valid.',
    check: 'signature',
    cause: 'The signature does not match: the token was changed, or signed with another key.',
    caller: 'Send the token unchanged, or request a new one.',
    operator:
      'Check that the key set belongs to the issuer, and that a new key has a new kid. Many such requests can be an attack.',
  },
  invalid_claims: {
    ...UNEXPECTED_CLAIMS,
    detail: 'A required claim of the access token is missing or of the wrong type.',
    cause: 'A required claim of the access token is missing or has the wrong type.',
    caller: GIVE_REQUEST_ID,
    operator: 'The log names the claim. Check TILLGATE_PRESET and the claims that the authorization server issues.',
  },
  wrong_issuer: {
    ...UNEXPECTED_CLAIMS,
    detail: 'The access token was issued by another authorization server.',
    cause: 'The access token was issued by another authorization server.',
    caller: 'Request the token from the authorization server of this API.',
    operator: 'TILLGATE_ISSUER must equal the `iss` of the tokens to the byte, a slash at the end included.',
  },
  wrong_audience: {
    ...UNEXPECTED_CLAIMS,
    detail: 'The access token was issued for another audience.',
    cause: 'The access token was issued for another API.',
    caller: 'Request a token for this API.',
    operator: 'TILLGATE_AUDIENCE must equal the `aud` of the tokens.',
  },
  expired: {
    ...INVALID_CLAIMS,
    detail: 'The access token has expired.',
    cause: 'The lifetime of the access token has ended.',
    caller: 'Request a new access token shortly before `expires_in` has passed.',
    operator: 'If new tokens are refused, compare the clocks of the API and of the authorization server.',
  },
  not_yet_valid: {
    ...UNEXPECTED_CLAIMS,
    detail: 'The access token is not valid yet.',
    cause: 'The access token is not valid yet: its `nbf` or `iat` lies in the future.',
    caller: 'Try again in some seconds.',
    operator: 'Compare the clocks of the API and of the authorization server.',
  },
  lifetime_too_long: {
    ...UNEXPECTED_CLAIMS,
    detail: 'The lifetime of the access token is longer than accepted here.',
    cause: 'The access token lives longer, from `iat` to `exp`, than this API accepts.',
    caller: GIVE_REQUEST_ID,
    operator: 'Shorten the lifetime at the authorization server, or raise TILLGATE_MAX_TOKEN_AGE_SECONDS.',
  },
  sender_constrained: {
    ...INVALID_CLAIMS,
    detail: 'The access token is bound to a key of its client: it is not accepted as a plain bearer token.',
    cause: 'The access token is bound to a key (`cnf`: DPoP or mutual TLS), and came without a proof of it.',
    caller: 'Send it with a DPoP proof (RFC 9449) or over mutual TLS (RFC 8705), or request a plain bearer token.',
    operator:
      'The log names the member that is not proven. List `dpop()` or `mtls()` in the option `possession`, or switch bound tokens off at the authorization server.',
  },
  binding_required: {
    ...INVALID_TOKEN,
    detail: 'The access token is not bound to a key of its client: a bound one is expected.',
    check: 'possession',
    cause: 'The access token is not bound to a key, and this API requires that.',
    caller: 'Request the token with a DPoP proof (RFC 9449), or over mutual TLS (RFC 8705).',
    operator: 'Check that the authorization server binds the tokens of this client.',
  },
  wrong_binding: {
    ...INVALID_TOKEN,
    detail: 'The access token is bound to another key than the one that the request proves.',
    ...PROOF,
    cause: 'The request proves another key, or has another client certificate, than the access token is bound to.',
    caller: 'Use the key or certificate with which the token was requested.',
    operator: 'Check that the proxy forwards the client certificate. Many such requests can be stolen tokens.',
  },
  invalid_dpop_proof: {
    status: 401,
    error: 'invalid_dpop_proof',
    title: 'Invalid DPoP proof',
    detail: 'The DPoP header is missing, or its proof is not valid for this request.',
    ...PROOF,
    cause: 'The DPoP proof is missing, is for another request, or was used before (RFC 9449).',
    caller: 'Make a new proof for each request, with `htm`, `htu`, `ath`, `iat` and a new `jti`.',
    operator: 'The log says what is wrong: for `htu` check `baseUrl` of `dpop()`, for `iat` the clock of the client.',
  },
  dpop_nonce_required: {
    status: 401,
    error: 'use_dpop_nonce',
    title: 'DPoP nonce required',
    detail: 'Make a new proof that contains the nonce in the DPoP-Nonce header of this response.',
    ...PROOF,
    cause: 'The DPoP proof has no nonce of this server, or an expired one (RFC 9449).',
    caller: 'Repeat the request with a new proof that has the DPoP-Nonce of the response.',
    operator: 'Nothing: the client repeats the request. Nonces are those of one process.',
  },
  generation_missing: {
    ...INVALID_GENERATION,
    detail: 'The access token carries no generation of its client credential.',
    configuration: true,
    cause: 'The access token does not carry the generation of its client credential.',
    caller: GIVE_REQUEST_ID,
    operator:
      'Have the authorization server add the claim that TILLGATE_GENERATION_CLAIM names, or remove the variable: then tokens without the claim are compared by `iat`. Where it is not set, the claim is null, or the floor of the client is not a time in ms.',
  },
  generation_invalid: {
    ...INVALID_GENERATION,
    detail: 'The generation in the access token is not valid.',
    cause: 'The generation in the access token is not an integer, or lies in the future.',
    caller: REQUEST_NEW_TOKEN,
    operator: 'Check TILLGATE_GENERATION_CLAIM and the clock of the authorization server.',
  },
  superseded: {
    ...INVALID_GENERATION,
    detail: 'The client credential has changed since the access token was issued: request a new one.',
    cause: 'The client credential has changed since the token was issued: its Description, its scopes or its secret.',
    caller: REQUEST_NEW_TOKEN,
    operator:
      'Nothing: tokens that were issued before such a change are meant to be refused. If new ones are too, the log says that issuer and publisher use different numbers: publish the number that the issuer stamps.',
  },
  inactive: {
    ...INVALID_TOKEN,
    detail: 'The access token is not active: it has expired, was revoked, or was never issued.',
    check: 'introspection',
    cause: 'The authorization server says that the access token is not active.',
    caller: REQUEST_NEW_TOKEN,
    operator:
      "If new tokens are refused, name the API's client in the token's audience: some servers (Keycloak, canaille) call a token inactive to every client that it is not meant for.",
  },
  insufficient_scope: {
    ...FORBIDDEN,
    error: 'insufficient_scope',
    title: 'Insufficient scope',
    detail: 'The access token lacks a scope that this resource requires.',
    cause: 'The access token lacks a scope that this operation requires.',
    caller: 'Request a token with the scopes in required_scopes. Write scopes do not include read scopes.',
    operator: 'Grant the client the scope at the authorization server, if it should have it.',
  },
  claim_refused: {
    ...FORBIDDEN,
    error: 'access_denied',
    title: 'Access denied',
    detail: 'The claims of the access token do not permit this request.',
    cause: 'A claim of the access token does not permit this request.',
    caller: 'Ask the operator for access; a new token with the same rights does not help.',
    operator: 'The log names the claim and the route.',
  },
  too_many_unknown_keys: {
    status: 429,
    title: 'Too many unknown keys or tokens',
    detail:
      'The access token or its key is not known yet, and too many others that are not known wait: try again later.',
    check: 'key',
    about: 'outage',
    cause:
      'The access token names an unknown key, and the issuer has been asked about such keys as often as is allowed; or too many new tokens of this client or network wait for introspection or the verification of their signatures (ES384, ES512); or the introspection endpoint has responded with 429, and for a minute after that too many tokens of this network were not active.',
    caller: RETRY_LATER,
    operator:
      'A few are normal after a change of keys. Many can be an attack with made-up tokens: limit its addresses, and set "trust proxy", so that the gate sees them. If the log says that the introspection endpoint limits calls, have its limit raised for this API.',
  },
  too_many_proofs: {
    status: 429,
    title: 'Too many DPoP proofs',
    detail: 'The client has sent more DPoP proofs than are checked and remembered for it: try again later.',
    ...PROOF,
    cause: 'This client has sent as many DPoP proofs in the last minutes as are checked and remembered for it.',
    caller: 'Send fewer requests, and repeat this one with a new proof after Retry-After.',
    operator: 'If the client may send so many, give it more room: `maxProofsPerClient` of `redisReplayStore()`.',
  },
  keys_unavailable: {
    ...OUTAGE,
    title: 'Keys unavailable',
    detail: 'The access token cannot be verified at the moment: the key set of its issuer is not available.',
    check: 'key',
    cause: 'The key set of the issuer is not available.',
    operator: 'Check that the API reaches the issuer: `tillgate check`, of @tillgate/cli (docs/operations.md).',
  },
  generations_unavailable: {
    ...OUTAGE,
    title: 'Generations unavailable',
    detail: 'The access token cannot be verified at the moment: its generation cannot be checked.',
    check: 'generation',
    cause: 'The source of generations is not available.',
    operator: 'Check the source in TILLGATE_GENERATIONS: `tillgate check`, of @tillgate/cli (docs/operations.md).',
  },
  introspection_unavailable: {
    ...OUTAGE,
    title: 'Introspection unavailable',
    detail: 'The access token cannot be verified at the moment: its issuer cannot be asked about it.',
    check: 'introspection',
    cause: 'The introspection endpoint is not available.',
    operator:
      'The log says why: it does not respond, or it refuses the client id and secret. `tillgate check`, of @tillgate/cli, tries them (docs/operations.md).',
  },
  replay_store_unavailable: {
    status: 503,
    title: 'Replay store unavailable',
    detail: 'The DPoP proof cannot be verified at the moment: whether it was used before is not known.',
    ...PROOF,
    cause: 'The store of used DPoP proofs is full or does not respond.',
    caller: 'Repeat the request with a new proof after Retry-After.',
    operator: 'Check the Redis of `redisReplayStore()`.',
  },
} satisfies Record<string, ReasonRow>;

/** Every way in which a request can be refused. The union is closed: `switch (error.reason)` narrows. */
export type Reason = keyof typeof ROWS;

/** One row per reason. */
export const REASONS: Readonly<Record<Reason, ReasonRow>> = ROWS;

/** What a 401 says in production instead of the reason: an attacker learns nothing from it. */
export const OPAQUE_INVALID_TOKEN: Omit<ReasonRow, 'check'> = {
  ...INVALID_TOKEN,
  detail: 'The access token is not valid.',
  cause: 'The access token is not accepted. In production callers do not learn why.',
  caller: `${REQUEST_NEW_TOKEN} If the new token is refused too, give the operator the request_id.`,
  operator:
    'Look up the request_id in the log, or run `tillgate explain <token>`, of @tillgate/cli (docs/operations.md).',
};
