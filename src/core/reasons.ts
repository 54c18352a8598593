/** What the caller sees for one reason: status, challenge, body, log and metric all come from this row. */
export interface ReasonRow {
  readonly status: 400 | 401 | 403 | 429 | 503;
  /**
   * `error` of the challenge (RFC 6750 section 3.1; `access_denied` from RFC 6749 section 4.1.2.1; those of DPoP from RFC 9449
   * section 12.2; `insufficient_user_authentication` from RFC 9470 section 3). Absent where RFC 6750 section 3.1 forbids one (no token), and where the token is not judged.
   */
  readonly error?:
    | 'invalid_request'
    | 'invalid_token'
    | 'insufficient_scope'
    | 'insufficient_user_authentication'
    | 'access_denied'
    | 'invalid_dpop_proof'
    | 'use_dpop_nonce';
  readonly title: string;
  /** Public text: constant, printable ASCII, safe in a header (RFC 6750 section 3). */
  readonly detail: string;
}

/** One row per reason. */
export const REASONS = {
  missing_token: {
    status: 401,
    title: 'Access token required',
    detail: 'Send an access token in the Authorization header: Authorization: Bearer <ACCESS_TOKEN>.',
  },
  malformed_authorization: {
    status: 400,
    error: 'invalid_request',
    title: 'Malformed Authorization header',
    detail: 'Send exactly one Authorization header of the form: Bearer <ACCESS_TOKEN>.',
  },
  token_in_query: {
    status: 400,
    error: 'invalid_request',
    title: 'Access token in the query',
    detail: 'Access tokens are accepted in the Authorization header only, not in the query string.',
  },
  token_in_body: {
    status: 400,
    error: 'invalid_request',
    title: 'Access token in the body',
    detail: 'Access tokens are accepted in the Authorization header only, not in a form body.',
  },
  malformed_token: invalidToken('The access token is not a well-formed JSON Web Token.'),
  algorithm_not_allowed: invalidToken('The access token is signed with an algorithm that is not accepted here.'),
  unsupported_critical_header: invalidToken('The access token carries a header extension that is not supported.'),
  wrong_type: invalidToken('The token is of another type: an access token is expected.'),
  unknown_key: invalidToken('The access token is signed with a key that its issuer does not publish.'),
  unusable_key: invalidToken('The access token is signed with a key that must not be used for access tokens.'),
  bad_signature: invalidToken('The signature of the access token is not valid.'),
  invalid_claims: invalidToken('A required claim of the access token is missing or of the wrong type.'),
  wrong_issuer: invalidToken('The access token was issued by another authorization server.'),
  wrong_audience: invalidToken('The access token was issued for another audience.'),
  expired: invalidToken('The access token has expired.'),
  not_yet_valid: invalidToken('The access token is not valid yet.'),
  lifetime_too_long: invalidToken('The lifetime of the access token is longer than accepted here.'),
  sender_constrained: invalidToken(
    'The access token is bound to a key of its client: it is not accepted as a plain bearer token.',
  ),
  binding_required: invalidToken('The access token is not bound to a key of its client: a bound one is expected.'),
  wrong_binding: invalidToken('The access token is bound to another key than the one that the request proves.'),
  invalid_dpop_proof: {
    status: 401,
    error: 'invalid_dpop_proof',
    title: 'Invalid DPoP proof',
    detail: 'The DPoP header is missing, or its proof is not valid for this request.',
  },
  dpop_nonce_required: {
    status: 401,
    error: 'use_dpop_nonce',
    title: 'DPoP nonce required',
    detail: 'Make a new proof that contains the nonce in the DPoP-Nonce header of this response.',
  },
  generation_missing: invalidToken('The access token carries no generation of its client credential.'),
  generation_invalid: invalidToken('The generation in the access token is not valid.'),
  superseded: invalidToken('The client credential has changed since the access token was issued: request a new one.'),
  inactive: invalidToken('The access token is not active: it has expired, was revoked, or was never issued.'),
  step_up_required: {
    status: 401,
    error: 'insufficient_user_authentication',
    title: 'Step-up required',
    detail: 'The user has to authenticate again, or more strongly, for this resource.',
  },
  insufficient_scope: {
    status: 403,
    error: 'insufficient_scope',
    title: 'Insufficient scope',
    detail: 'The access token lacks a scope that this resource requires.',
  },
  claim_refused: {
    status: 403,
    error: 'access_denied',
    title: 'Access denied',
    detail: 'The claims of the access token do not permit this request.',
  },
  too_many_unknown_keys: {
    status: 429,
    title: 'Too many unknown keys or tokens',
    detail:
      'The access token or its key is not known yet, and too many others that are not known wait: try again later.',
  },
  too_many_proofs: {
    status: 429,
    title: 'Too many DPoP proofs',
    detail: 'The client has sent more DPoP proofs than are checked and remembered for it: try again later.',
  },
  keys_unavailable: {
    status: 503,
    title: 'Keys unavailable',
    detail: 'The access token cannot be verified at the moment: the key set of its issuer is not available.',
  },
  generations_unavailable: {
    status: 503,
    title: 'Generations unavailable',
    detail: 'The access token cannot be verified at the moment: its generation cannot be checked.',
  },
  introspection_unavailable: {
    status: 503,
    title: 'Introspection unavailable',
    detail: 'The access token cannot be verified at the moment: its issuer cannot be asked about it.',
  },
  replay_store_unavailable: {
    status: 503,
    title: 'Replay store unavailable',
    detail: 'The DPoP proof cannot be verified at the moment: whether it was used before is not known.',
  },
} as const satisfies Record<string, ReasonRow>;

/** Every way in which a request can be refused. The union is closed: `switch (error.reason)` narrows. */
export type Reason = keyof typeof REASONS;

/** What a 401 says in production instead of the reason: an attacker learns nothing from it. */
export const OPAQUE_INVALID_TOKEN: ReasonRow = invalidToken('The access token is not valid.');

function invalidToken(detail: string) {
  return { status: 401, error: 'invalid_token', title: 'Invalid access token', detail } as const;
}
