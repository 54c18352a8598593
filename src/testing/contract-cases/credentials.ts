import type { Reason } from '../../core/reasons';
import type { Alternatives } from '../../openapi/document';
import type { TestToken } from '../test-token';
import type { ApiRequest, ExpectedRefusal } from './responses';

/** The part of a test issuer that contract cases need. */
export interface TokenSource {
  /** Signs a token (RFC 9068), a good one by default. */
  token(this: void, token?: TestToken): string;
}

/** How a request carries its token. */
export interface TokenTransport {
  readonly headers?: ApiRequest['headers'];
  /** Added to the query. */
  readonly query?: string;
}

/** One way to send a bad token, or none: every gate refuses it. */
interface Attack {
  /** `refuses ...` */
  readonly name: string;
  readonly accepted: readonly ExpectedRefusal[];
  /** How the token differs from a good one with sufficient scopes. */
  readonly token?: TestToken;
  readonly send: (token: string) => TokenTransport;
}

const ELSEWHERE = 'elsewhere.example';

const NO_TOKEN: ExpectedRefusal = { status: 401, codes: ['missing_token'] };
const REPEATED: ExpectedRefusal = { status: 400, error: 'invalid_request', codes: ['malformed_authorization'] };
const TOKEN_IN_QUERY: ExpectedRefusal = { status: 400, error: 'invalid_request', codes: ['token_in_query'] };

/** All attacks, in the order in which a gate checks for them. */
export const ATTACKS: readonly Attack[] = [
  { name: 'a request without a token', accepted: [NO_TOKEN], send: () => ({}) },
  {
    name: 'two Authorization headers',
    accepted: [REPEATED],
    send: (token) => ({ headers: { authorization: [`Bearer ${token}`, `Bearer ${token}`] } }),
  },
  {
    name: 'a token in the header and in the query',
    accepted: [TOKEN_IN_QUERY],
    send: (token) => ({ ...bearer(token), query: `access_token=${token}` }),
  },
  {
    name: 'a token in the query',
    // An API may ignore the query: then the request has no token (RFC 9700 section 4.3.2).
    accepted: [TOKEN_IN_QUERY, NO_TOKEN],
    send: (token) => ({ query: `access_token=${token}` }),
  },
  { ...badToken('a malformed token', ['malformed_token']), send: () => bearer('not-a-token') },
  // A gate may check first that there is a signature.
  badToken('an unsigned token (alg none)', ['algorithm_not_allowed', 'malformed_token'], { algorithm: 'none' }),
  badToken('a token signed with the public key (HS256)', ['algorithm_not_allowed'], { algorithm: 'HS256' }),
  badToken('a token signed with a foreign key', ['bad_signature'], { foreignKey: true }),
  badToken('a token of another issuer', ['wrong_issuer'], { issuer: `https://${ELSEWHERE}` }),
  badToken('a token for another audience', ['wrong_audience'], { audience: `https://api.${ELSEWHERE}` }),
  badToken('an expired token', ['expired'], { expired: true }),
  // A client of its own: all of its earlier tokens are superseded.
  badToken('a superseded token', ['superseded'], { superseded: true, clientId: 'contract-cases-superseded' }),
];

/** A token where it belongs (RFC 6750 section 2.1). */
export function bearer(token: string): TokenTransport {
  return { headers: { authorization: `Bearer ${token}` } };
}

function badToken(name: string, codes: readonly Reason[], token: TestToken = {}): Attack {
  return { name, accepted: [{ status: 401, error: 'invalid_token', codes }], token, send: bearer };
}

/** The scopes of a token, with a description of it. */
interface ScopeSet {
  readonly name: string;
  readonly scopes: readonly string[];
}

/** Limits the combinations of scopes that are left out, one of each alternative. */
const MAX_COMBINATIONS = 24;

/** The smallest sufficient sets: each alternative of an operation. */
export function sufficientSets(alternatives: Alternatives): readonly ScopeSet[] {
  const sets = alternatives.map((scopes) => {
    return {
      name: scopes.length === 0 ? 'a token without scopes' : `a token with only ${scopes.join(' and ')}`,
      scopes,
    };
  });
  return withoutRepeats(sets);
}

/** Insufficient: no scope, alternatives without a scope, all scopes but one of each, and names that are only similar. */
export function insufficientSets(alternatives: Alternatives, declared: readonly string[]): readonly ScopeSet[] {
  const isSufficient = ({ scopes }: ScopeSet): boolean =>
    alternatives.some((all) => all.every((one) => scopes.includes(one)));
  const required = [...new Set(alternatives.flat())];
  const known = [...new Set([...declared, ...required])];
  const similar = required.flatMap((scope) => [`${scope}x`, `x${scope}`, scope.toUpperCase(), scope.slice(0, -1)]);
  const sets: readonly ScopeSet[] = [
    { name: 'a token without scopes', scopes: [] },
    ...alternatives.flatMap((scopes) =>
      scopes.map((missing) => {
        const left = scopes.filter((scope) => scope !== missing);
        return { name: `a token with ${left.join(' and ')}, without ${missing}`, scopes: left };
      }),
    ),
    ...combinationsLeftOut(alternatives).map((missing) => ({
      name: `a token with every scope except ${missing.join(' and ')}`,
      scopes: known.filter((scope) => !missing.includes(scope)),
    })),
    {
      name: `a token with names similar to ${required.join(' and ')}`,
      scopes: similar.filter((scope) => scope !== '' && !required.includes(scope)),
    },
  ];
  return withoutRepeats(sets.filter((set) => !isSufficient(set)));
}

/** Every way to leave out one scope of each alternative; the scopes that remain are never sufficient. */
function combinationsLeftOut(alternatives: Alternatives): Alternatives {
  let combinations: Alternatives = [[]];
  for (const scopes of alternatives) {
    const extended = combinations.flatMap((left) =>
      scopes.some((scope) => left.includes(scope)) ? [left] : scopes.map((scope) => [...left, scope]),
    );
    combinations = extended.slice(0, MAX_COMBINATIONS);
  }
  return combinations.filter((left) => left.length > 0);
}

function withoutRepeats(sets: readonly ScopeSet[]): readonly ScopeSet[] {
  const keys = sets.map(({ scopes }) => [...scopes].sort().join(' '));
  return sets.filter((_set, index) => keys.indexOf(keys[index] as string) === index);
}
