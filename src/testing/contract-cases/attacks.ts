import type { Reason } from '../../core/reasons';
import type { TestToken } from '../test-issuer-token';
import type { SentHeaders } from './client';
import type { Refusal } from './refusal';

/** What a contract test needs of an issuer. */
export interface TokenSource {
  /** Signs a token (RFC 9068), a good one unless told otherwise. */
  token(this: void, token?: TestToken): string;
}

/** One way to send a token, or none, that every gate refuses. */
export interface Attack {
  /** `refuses ...` */
  readonly name: string;
  readonly accepted: readonly Refusal[];
  /** Whether it is about a change that the API may learn of later. */
  readonly isChange?: boolean;
  /** What is added to a good request; `scope` would be enough. */
  build(issuer: TokenSource, scope: string): Addition;
}

/** What carries a token. */
export interface Addition {
  readonly headers?: SentHeaders;
  /** Added to the query. */
  readonly query?: string;
}

const NOT_A_TOKEN = 'not-a-token';
const ELSEWHERE = 'elsewhere.example';

/** Its tokens die, so nobody else may use it. */
const SUPERSEDED_CLIENT = 'contract-cases-superseded';

const NO_TOKEN: Refusal = { status: 401, codes: ['missing_token'] };
const TWO_WAYS: Refusal = { status: 400, error: 'invalid_request', codes: ['token_in_query'] };

/** Every way, in the order in which a gate finds them. */
export const ATTACKS: readonly Attack[] = [
  { name: 'a request without a token', accepted: [NO_TOKEN], build: () => ({}) },
  {
    name: 'two Authorization headers',
    accepted: [{ status: 400, error: 'invalid_request', codes: ['malformed_authorization'] }],
    build: (issuer: TokenSource, scope: string): Addition => {
      const authorization = bearer(issuer.token({ scope }));
      return { headers: { authorization: [authorization, authorization] } };
    },
  },
  {
    name: 'a token in the header and in the query',
    accepted: [TWO_WAYS],
    build: (issuer: TokenSource, scope: string): Addition => {
      const token = issuer.token({ scope });
      return { headers: { authorization: bearer(token) }, query: `access_token=${token}` };
    },
  },
  {
    name: 'a token in the query',
    // An API that knows nothing of such tokens has not been given any (RFC 9700 section 4.3.2).
    accepted: [TWO_WAYS, NO_TOKEN],
    build: (issuer, scope) => ({ query: `access_token=${issuer.token({ scope })}` }),
  },
  {
    name: 'a malformed token',
    accepted: [invalidToken(['malformed_token'])],
    build: () => ({ headers: { authorization: bearer(NOT_A_TOKEN) } }),
  },
  // It has no signature either, and a gate may look at that first.
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

function badToken(name: string, codes: readonly Reason[], token: TestToken): Attack {
  return {
    name,
    accepted: [invalidToken(codes)],
    build: (issuer, scope) => ({ headers: { authorization: bearer(issuer.token({ scope, ...token })) } }),
  };
}

function invalidToken(codes: readonly Reason[]): Refusal {
  return { status: 401, error: 'invalid_token', codes };
}
