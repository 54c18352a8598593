import type { Reason } from './reasons';

/** What to know about one kind of problem, in full sentences. */
export interface Advice {
  /** Why the request was refused. */
  readonly cause: string;
  /** What the developer of the caller does. */
  readonly caller: string;
  /** What the operator of the API does. */
  readonly operator: string;
}

const REQUEST_NEW_TOKEN = 'Request a new access token and repeat the request with it.';
const NOTHING_TO_DO = 'Nothing, unless many callers are affected.';

/** Advice for each reason; `invalid_token` stands for every 401 about a token in production. */
export const REASON_ADVICE = {
  missing_token: {
    cause: 'The request has no access token.',
    caller: 'Send `Authorization: Bearer <ACCESS_TOKEN>` with every request.',
    operator: 'If the caller did send one, check that no proxy removes the Authorization header.',
  },
  malformed_authorization: {
    cause: 'The Authorization header is not `Bearer`, one space and one token, or it was sent more than once.',
    caller: 'Send exactly one Authorization header: `Authorization: Bearer <ACCESS_TOKEN>`.',
    operator: 'Check that no proxy adds a second Authorization header.',
  },
  token_in_query: {
    cause: 'The access token is in the query of the URL, where logs and browser histories keep it.',
    caller: 'Send the token in the Authorization header, and request a new one: the old one may have been logged.',
    operator: 'Remove the URL from the logs of proxies.',
  },
  token_in_body: {
    cause: 'The access token is in the form body of the request.',
    caller: 'Send the token in the Authorization header.',
    operator: NOTHING_TO_DO,
  },
  invalid_token: {
    cause: 'The access token is not accepted. In production the exact reason is not disclosed to callers.',
    caller: `${REQUEST_NEW_TOKEN} If the new token is refused too, give the operator the request_id.`,
    operator: 'Look up the reason in the log by request_id, or run `tillgate explain <token>`.',
  },
  malformed_token: {
    cause: 'The access token is not a JSON Web Token: three base64url parts, the first two of them JSON objects.',
    caller: 'Send the access_token of the token response unchanged. Opaque tokens and refresh tokens are not accepted.',
    operator: 'Check that the authorization server issues JWT access tokens for this API.',
  },
  algorithm_not_allowed: {
    cause: 'The access token is signed with an algorithm that this API does not accept.',
    caller: 'Check that the token comes from the right authorization server.',
    operator: 'Let the authorization server sign with an asymmetric algorithm that this API accepts, such as RS256.',
  },
  unsupported_critical_header: {
    cause: 'The header of the access token names a critical extension (`crit`, RFC 7515 section 4.1.11).',
    caller: 'Check that the token comes from the right authorization server.',
    operator: 'Switch the extension off at the authorization server.',
  },
  wrong_type: {
    cause: 'The token is not an access token: its `typ` says something else, for example that it is an ID token.',
    caller: 'Send the access_token of the token response, not the id_token.',
    operator: 'Check that TILLGATE_PRESET names the product that issues the tokens.',
  },
  unknown_key: {
    cause: 'The issuer does not publish the key that the access token names.',
    caller: REQUEST_NEW_TOKEN,
    operator:
      'If new tokens are refused too, TILLGATE_JWKS_URI is the key set of another server, realm or stage than the one that signs them.',
  },
  unusable_key: {
    cause:
      'The issuer publishes the key that the access token names, but access tokens must not be verified with it: it is too short, broken, private, or meant for something else.',
    caller: 'Give the operator the request_id.',
    operator: 'The log says which key and why. Let the authorization server publish a key that can be used.',
  },
  bad_signature: {
    cause: 'The signature of the access token does not match: it was changed, or signed with another key.',
    caller: 'Send the token unchanged. If it is, request a new one.',
    operator: 'Check that the key set belongs to the issuer. Many such requests can be an attack.',
  },
  invalid_claims: {
    cause: 'A required claim of the access token is missing or has the wrong type.',
    caller: 'Give the operator the request_id.',
    operator: 'The log names the claim. Check TILLGATE_PRESET and the claims that the authorization server issues.',
  },
  wrong_issuer: {
    cause: 'The access token was issued by another authorization server.',
    caller: 'Request the token from the authorization server of this API: see its protected resource metadata.',
    operator: 'TILLGATE_ISSUER must equal the `iss` of the tokens to the byte, including a slash at the end.',
  },
  wrong_audience: {
    cause: 'The access token was issued for another API.',
    caller: 'Request a token for this API.',
    operator: 'TILLGATE_AUDIENCE must equal the `aud` that the authorization server issues.',
  },
  expired: {
    cause: 'The lifetime of the access token has ended.',
    caller: 'Request a new access token shortly before `expires_in` has passed.',
    operator: 'If new tokens are refused, compare the clocks of the API and of the authorization server.',
  },
  not_yet_valid: {
    cause: 'The access token is not valid yet: its `nbf` or `iat` lies in the future.',
    caller: 'Try again in some seconds.',
    operator: 'Compare the clocks of the API and of the authorization server.',
  },
  lifetime_too_long: {
    cause: 'The access token lives longer, from `iat` to `exp`, than this API accepts.',
    caller: 'Give the operator the request_id.',
    operator: 'Shorten the lifetime at the authorization server, or raise TILLGATE_MAX_TOKEN_AGE_SECONDS.',
  },
  sender_constrained: {
    cause:
      'The access token is bound to a key of its client (`cnf`: DPoP or mutual TLS), and came without a proof of that key.',
    caller:
      'Send it with the DPoP scheme and a proof (RFC 9449), or over mutual TLS (RFC 8705), as it was requested; or request a plain bearer token.',
    operator:
      'Switch the option `dpop` or `mtls` of the gate on, or sender-constrained tokens off at the authorization server.',
  },
  binding_required: {
    cause: 'The access token is not bound to a key of its client, and this API accepts bound ones only.',
    caller: 'Request the token with a DPoP proof (RFC 9449 section 5), or over mutual TLS (RFC 8705 section 3).',
    operator: 'Check that the authorization server binds the tokens of this client.',
  },
  wrong_binding: {
    cause: 'The request proves another key, or has another client certificate, than the access token is bound to.',
    caller: 'Use the key or certificate with which the token was requested.',
    operator: 'Check that the proxy forwards the certificate of the client. Many such requests can be stolen tokens.',
  },
  invalid_dpop_proof: {
    cause:
      'The DPoP header is missing, or its proof has another method, URL, access token or time, or was used before (RFC 9449 section 4.3).',
    caller: 'Make a new proof for each request, with `htm`, `htu`, `ath`, `iat` and a new `jti`.',
    operator:
      'The log says what is wrong. If it is `htu`, check `dpop.baseUrl`; if it is `iat`, the clock of the client.',
  },
  dpop_nonce_required: {
    cause: 'The DPoP proof has no nonce of this server, or one that has expired (RFC 9449 section 9).',
    caller: 'Repeat the request with a new proof that contains the DPoP-Nonce of the response.',
    operator: 'Several processes need the same `dpop.nonce.secret`.',
  },
  generation_missing: {
    cause: 'The access token does not carry the generation of its client credential.',
    caller: 'Give the operator the request_id.',
    operator: 'Let the authorization server add the claim, or set TILLGATE_GENERATION_CLAIM to `iat` or `off`.',
  },
  generation_invalid: {
    cause: 'The generation in the access token is not an integer, or lies in the future.',
    caller: REQUEST_NEW_TOKEN,
    operator: 'Check TILLGATE_GENERATION_CLAIM and the clock of the authorization server.',
  },
  superseded: {
    cause: 'The client credential has changed since the token was issued: its Description, its scopes or its secret.',
    caller: REQUEST_NEW_TOKEN,
    operator: 'Nothing: tokens that were issued before such a change are meant to be refused.',
  },
  inactive: {
    cause:
      'The authorization server says that the opaque access token is not active: expired, revoked or never issued.',
    caller: REQUEST_NEW_TOKEN,
    operator:
      'If new tokens are refused, check that the option `introspection` (`TILLGATE_INTROSPECTION_URL`) names the server that issues them.',
  },
  step_up_required: {
    cause: 'The user of the access token has not authenticated recently or strongly enough for this operation.',
    caller: 'Send the user to the authorization server again, with the acr_values and max_age of the challenge.',
    operator:
      'If users cannot pass, check that the authorization server puts `acr` and `auth_time` into its access tokens; tokens of machines have neither.',
  },
  insufficient_scope: {
    cause: 'The access token lacks a scope that this operation requires.',
    caller: 'Request a token with the scopes in required_scopes. Write scopes do not include read scopes.',
    operator: 'Grant the client the scope at the authorization server, if it should have it.',
  },
  claim_refused: {
    cause: 'A claim of the access token does not permit this request.',
    caller: 'A new token with the same rights does not help: ask the operator for access.',
    operator: 'The log names the claim and the route.',
  },
  too_many_unknown_keys: {
    cause:
      'The access token names a key that is not known yet, and the issuer has been asked about unknown keys as often as is allowed.',
    caller: 'Keep the token and repeat the request after Retry-After.',
    operator:
      'Some requests per minute are normal after a change of keys. Many can be an attack with made-up key ids: limit its addresses.',
  },
  too_many_signatures: {
    cause:
      'More access tokens or proofs with expensive signatures (ES384, ES512, ...) arrived than can be verified in a quarter of a second. Callers of other addresses are not affected, nor are tokens that were verified before.',
    caller: 'Keep the token, and repeat the request after Retry-After.',
    operator:
      'Many at once can be forged tokens: limit their addresses, and set "trust proxy" so that the gate sees them. Otherwise let the authorization server sign with RS256 or ES256, or start more processes.',
  },
  too_many_proofs: {
    cause:
      'One key has signed as many DPoP proofs in the last minutes as are remembered for it. Other keys are not affected.',
    caller: 'Send fewer requests with this key, and repeat this one with a new proof after Retry-After.',
    operator:
      'If the client may send so many, give the store of `dpop.replayStore` more room: `maxProofs`, `maxProofsPerKey` in Redis.',
  },
  keys_unavailable: {
    cause: 'The API cannot verify tokens at the moment, because the key set of their issuer is not available.',
    caller: 'Keep the token and repeat the request after Retry-After.',
    operator: 'Check that the API reaches the authorization server: `tillgate check`.',
  },
  generations_unavailable: {
    cause: 'The API cannot check the generation of tokens at the moment, because their source is not available.',
    caller: 'Keep the token and repeat the request after Retry-After.',
    operator: 'Check the source in TILLGATE_GENERATIONS: `tillgate check`.',
  },
  introspection_unavailable: {
    cause: 'The API cannot verify opaque tokens at the moment, because the introspection endpoint is not available.',
    caller: 'Keep the token and repeat the request after Retry-After.',
    operator:
      'The log says why: the endpoint does not respond, or it refuses `clientId` and `clientSecret` of the option `introspection` (`TILLGATE_INTROSPECTION_CLIENT_ID`, `TILLGATE_INTROSPECTION_CLIENT_SECRET`). `tillgate check` tries them.',
  },
  replay_store_unavailable: {
    cause: 'Whether the DPoP proof was used before is not known: the store of used proofs is full or does not respond.',
    caller: 'Repeat the request with a new proof after the time in Retry-After.',
    operator: 'Check the Redis of `dpop.replayStore`, or give the store in memory more room.',
  },
} as const satisfies Record<Reason | 'invalid_token', Advice>;
