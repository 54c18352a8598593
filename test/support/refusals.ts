import type { Response } from 'supertest';
import type { Reason } from '../../src/gate';
import type { GateApp } from './gate-app';

/** What a reason looks like on the wire, written independently of src: a change of the contract has to be deliberate. */
interface Wire {
  readonly status: number;
  readonly error?: string;
  readonly title: string;
  readonly detail: string;
}

const invalidRequest = (title: string, detail: string): Wire => ({
  status: 400,
  error: 'invalid_request',
  title,
  detail,
});
const invalidToken = (detail: string): Wire => ({
  status: 401,
  error: 'invalid_token',
  title: 'Invalid access token',
  detail,
});

export const WIRE: Readonly<Record<Reason, Wire>> = {
  missing_token: {
    status: 401,
    title: 'Access token required',
    detail: 'Send an access token in the Authorization header: Authorization: Bearer <ACCESS_TOKEN>.',
  },
  malformed_authorization: invalidRequest(
    'Malformed Authorization header',
    'Send exactly one Authorization header of the form: Bearer <ACCESS_TOKEN>.',
  ),
  token_in_query: invalidRequest(
    'Access token in the query',
    'Access tokens are accepted in the Authorization header only, not in the query string.',
  ),
  token_in_body: invalidRequest(
    'Access token in the body',
    'Access tokens are accepted in the Authorization header only, not in a form body.',
  ),
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
};

/** What differs from an ordinary refusal of the test app. */
export interface RefusalDetails {
  readonly realm?: string;
  readonly scopes?: readonly string[];
  /** Scopes that the challenge names, and the body does not. */
  readonly challengeScopes?: readonly string[];
  readonly resourceMetadata?: string;
  readonly retryAfter?: number;
  readonly requestId?: string;
  /** What operators are told. */
  readonly detail?: string;
  /** Whether the request used the DPoP scheme, or the gate also accepts it. Default: the gate does not know it. */
  readonly dpop?: 'used' | 'accepted';
}

/** Algorithms that a gate accepts for proofs by default. */
const PROOF_ALGORITHMS = 'ES256 ES384 EdDSA Ed25519 PS256 RS256';

/** The exact challenge of a reason; `undefined` where the caller is to come back, with 429 or 503. */
export function challengeOf(
  reason: Reason,
  { realm = 'api', scopes, challengeScopes = scopes, resourceMetadata, dpop }: RefusalDetails = {},
): string | undefined {
  const { status, error, detail } = WIRE[reason];
  if (status >= 429) return undefined;
  const named = error === undefined ? '' : `, error="${error}", error_description="${detail}"`;
  const scope = challengeScopes ? `, scope="${challengeScopes.join(' ')}"` : '';
  const metadata = resourceMetadata === undefined ? '' : `, resource_metadata="${resourceMetadata}"`;
  const parameters = `realm="${realm}"${named}${scope}${metadata}`;
  const algs = `algs="${PROOF_ALGORITHMS}"`;
  if (dpop === 'used') return `DPoP ${parameters}, ${algs}`;
  return `Bearer ${parameters}${dpop === undefined ? '' : `, DPoP ${algs}`}`;
}

const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  429: 'Too Many Requests',
  503: 'Service Unavailable',
};

/** The exact problem body of a reason. */
export function problemOf(reason: Reason, { scopes, requestId }: RefusalDetails = {}): object {
  const { status, detail } = WIRE[reason];
  return {
    type: 'about:blank',
    // RFC 9457 section 4.2.1.
    title: PHRASES[status],
    status,
    detail,
    code: reason,
    ...(scopes && { required_scopes: scopes }),
    ...(requestId !== undefined && { request_id: requestId }),
  };
}

/**
 * Asserts everything about a refusal: status, exact challenge, body, headers, handler not reached, one log line with the
 * reason, and no part of a presented token in the response or in the log.
 */
export function expectRefusal(
  response: Response,
  reason: Reason,
  through: Pick<GateApp, 'reached' | 'presented' | 'log'>,
  details: RefusalDetails = {},
): void {
  expect({ status: response.status, code: response.body.code }).toEqual({ status: WIRE[reason].status, code: reason });
  expect(response.headers['www-authenticate']).toBe(challengeOf(reason, details));
  expect(response.headers['retry-after']).toEqual(retryAfterOf(response.status, details));
  expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
  expect(response.headers['cache-control']).toBe('no-store');
  expect(response.body).toEqual(problemOf(reason, details));
  expect(through.reached).toEqual([]);
  const logged = through.log.at('info').at(-1)?.fields;
  expect(logged?.['reason']).toBe(reason);
  if (details.detail !== undefined) expect(logged?.['detail']).toBe(details.detail);
  expectNoTokenLeak(response, through);
}

function retryAfterOf(status: number, { retryAfter }: RefusalDetails): unknown {
  if (status < 429) return undefined;
  return retryAfter === undefined ? expect.stringMatching(/^[1-9]\d*$/) : String(retryAfter);
}

/** Asserts that no part of a presented token is in the response or in the log. */
export function expectNoTokenLeak(response: Response, { presented, log }: Pick<GateApp, 'presented' | 'log'>): void {
  const output = JSON.stringify([response.headers, response.text, log.entries]);
  const parts = presented.flatMap((header) => header.split(/[\s.,]+/)).filter((part) => part.length >= 16);
  expect(parts.filter((part) => output.includes(part))).toEqual([]);
}
