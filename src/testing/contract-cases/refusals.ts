import { isObject } from '../../core/objects';
import type { ChallengeError, Reason } from '../../core/reasons';
import { bearerChallenge } from '../matchers/expectations';
import { mediaTypeOf } from './http-client';
import type { ApiResponse } from './http-client';
import type { Mismatch } from './mismatch';

/** One way in which a request may be refused (RFC 6750 section 3). */
export interface ExpectedRefusal {
  readonly status: number;
  readonly error?: ChallengeError;
  /** Accepted reasons. */
  readonly codes: readonly Reason[];
  /** Sets of scopes; the challenge names one of them. */
  readonly scopes?: readonly (readonly string[])[];
}

/** Compares the response to a refused request with the accepted refusals. */
export type CompareRefusal = (
  response: ApiResponse,
  accepted: readonly ExpectedRefusal[],
  hasBody?: boolean,
) => readonly Mismatch[];

const HIDDEN_REASON = 'invalid_token';
const PROBLEM = 'application/problem+json';

/**
 * Makes the rules for refused requests: status, challenge, problem body. A gate in production says only `invalid_token`
 * instead of the reason; all of its responses must agree on that, as `exposeReasons` says or as the first one does.
 */
export function refusalRules({
  problems,
  exposeReasons,
}: {
  readonly problems: boolean;
  readonly exposeReasons: boolean | undefined;
}): CompareRefusal {
  let exposed = exposeReasons;

  function codesOf({ error, codes }: ExpectedRefusal, got: unknown): readonly unknown[] {
    if (error !== 'invalid_token') return codes;
    const isReason = codes.some((code) => code === got);
    if (exposed === undefined && (isReason || got === HIDDEN_REASON)) exposed = isReason;
    return exposed === false ? [HIDDEN_REASON] : codes;
  }

  function compareProblem({ status, headers, body }: ApiResponse, refusal: ExpectedRefusal): readonly Mismatch[] {
    const type = mediaTypeOf(headers['content-type']);
    if (type !== PROBLEM) return [{ what: 'content type', got: type, expected: PROBLEM }];
    const problem = isObject(body) ? body : {};
    const { code } = problem;
    return differing([
      { what: 'status in the body', got: problem['status'], expected: status },
      { what: 'code', got: code, expected: anyOf(codesOf(refusal, code), code) },
    ]);
  }

  return function compareRefusal(response, accepted, hasBody = true) {
    const refusal = accepted.find(({ status }) => status === response.status);
    if (!refusal) {
      const statuses = accepted.map(({ status }) => status);
      return [{ what: 'status', got: response.status, expected: anyOf(statuses, response.status) }];
    }
    return [...compareChallenge(response, refusal), ...(problems && hasBody ? compareProblem(response, refusal) : [])];
  };
}

function compareChallenge({ headers }: ApiResponse, { status, error, scopes }: ExpectedRefusal): readonly Mismatch[] {
  const header = headers['www-authenticate'];
  const challenge = header === undefined ? undefined : bearerChallenge(header);
  if (!challenge) return [{ what: 'challenge', got: header ?? 'none', expected: 'Bearer' }];
  const { error: got, scope } = challenge;
  // A 401 may name the scopes to ask for (RFC 6750 section 3): which ones is up to the app.
  return differing([
    { what: 'error of the challenge', got, expected: error },
    { what: 'scope of the challenge', got: scope, expected: status === 401 ? scope : expectedScope(scopes, scope) },
  ]);
}

/** Order and spaces do not matter (RFC 6749 section 3.3): an accepted scope is returned as it was received. */
function expectedScope(accepted: ExpectedRefusal['scopes'], got: string | undefined): string | undefined {
  const sorted = (scopes: readonly string[]): string => [...new Set(scopes)].sort().join(' ');
  const named = got === undefined ? undefined : sorted(got.split(' ').filter(Boolean));
  return accepted?.some((scopes) => sorted(scopes) === named) ? got : accepted?.[0]?.join(' ');
}

/** The received value when it is among the accepted ones, else all of those. */
function anyOf(accepted: readonly unknown[], got: unknown): unknown {
  if (accepted.includes(got)) return got;
  return accepted.length === 1 ? accepted[0] : accepted.join(' or ');
}

function differing(comparisons: readonly Mismatch[]): readonly Mismatch[] {
  return comparisons.filter(({ got, expected }) => got !== expected);
}
