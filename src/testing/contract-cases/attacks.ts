import type { Reason } from '../../core/reasons';
import type { TestToken } from '../test-issuer/token';
import type { SentHeaders } from './http-client';
import type { ExpectedRefusal } from './refusals';

/** The part of a test issuer that contract cases need. */
export interface TokenSource {
  /** Signs a token (RFC 9068), a good one by default. */
  token(this: void, token?: TestToken): string;
}

/** How a request carries its token. */
export interface TokenTransport {
  readonly headers?: SentHeaders;
  /** Added to the query. */
  readonly query?: string;
}

/** One way to send a bad token, or none: every gate refuses it. */
export interface Attack {
  /** `refuses ...` */
  readonly name: string;
  readonly accepted: readonly ExpectedRefusal[];
  /** Whether the API may learn late of the change that makes the token bad. */
  readonly isChange?: boolean;
  /** Makes the bad token of a request that is good otherwise; `scope` is sufficient. */
  build(issuer: TokenSource, scope: string): TokenTransport;
}

const ELSEWHERE = 'elsewhere.example';
/** Used by one attack only: all of its earlier tokens are superseded. */
const SUPERSEDED_CLIENT = 'contract-cases-superseded';

const NO_TOKEN: ExpectedRefusal = { status: 401, codes: ['missing_token'] };
const REPEATED: ExpectedRefusal = { status: 400, error: 'invalid_request', codes: ['malformed_authorization'] };
const TOKEN_IN_QUERY: ExpectedRefusal = { status: 400, error: 'invalid_request', codes: ['token_in_query'] };

/** All attacks, in the order in which a gate checks for them. */
export const ATTACKS: readonly Attack[] = [
  { name: 'a request without a token', accepted: [NO_TOKEN], build: () => ({}) },
  {
    name: 'two Authorization headers',
    accepted: [REPEATED],
    build: (issuer: TokenSource, scope: string): TokenTransport => {
      const authorization = bearer(issuer.token({ scope }));
      return { headers: { authorization: [authorization, authorization] } };
    },
  },
  {
    name: 'a token in the header and in the query',
    accepted: [TOKEN_IN_QUERY],
    build: (issuer: TokenSource, scope: string): TokenTransport => {
      const token = issuer.token({ scope });
      return { headers: { authorization: bearer(token) }, query: `access_token=${token}` };
    },
  },
  {
    name: 'a token in the query',
    // An API may ignore the query: then the request has no token (RFC 9700 section 4.3.2).
    accepted: [TOKEN_IN_QUERY, NO_TOKEN],
    build: (issuer, scope) => ({ query: `access_token=${issuer.token({ scope })}` }),
  },
  {
    ...badToken('a malformed token', ['malformed_token']),
    build: () => ({ headers: { authorization: bearer('not-a-token') } }),
  },
  // A gate may check first that there is a signature.
  badToken('an unsigned token (alg none)', ['algorithm_not_allowed', 'malformed_token'], { algorithm: 'none' }),
  badToken('a token signed with the public key (HS256)', ['algorithm_not_allowed'], { algorithm: 'HS256' }),
  badToken('a token signed with a foreign key', ['bad_signature'], { foreignKey: true }),
  badToken('a token of another issuer', ['wrong_issuer'], { issuer: `https://${ELSEWHERE}` }),
  badToken('a token for another audience', ['wrong_audience'], { audience: `https://api.${ELSEWHERE}` }),
  badToken('an expired token', ['expired'], { expired: true }),
  {
    ...badToken('a superseded token', ['superseded'], { superseded: true, clientId: SUPERSEDED_CLIENT }),
    isChange: true,
  },
];

/** The value of an Authorization header (RFC 6750 section 2.1). */
export function bearer(token: string): string {
  return `Bearer ${token}`;
}

function badToken(name: string, codes: readonly Reason[], token?: TestToken): Attack {
  return {
    name,
    accepted: [{ status: 401, error: 'invalid_token', codes }],
    build: (issuer, scope) => ({ headers: { authorization: bearer(issuer.token({ scope, ...token })) } }),
  };
}
