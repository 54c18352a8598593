import type { ChallengeError, Reason } from '../../core/reasons';
import { bearerChallenge } from '../bearer-challenge';
import type { Answer } from './client';
import type { Deviation } from './deviation';
import { mediaTypeOf } from './media-type';
import { isRecord } from './reference';

/** How a request may be refused (RFC 6750 section 3). */
export interface Refusal {
  readonly status: number;
  readonly error?: ChallengeError;
  /** Reasons, any of which fits. */
  readonly codes: readonly Reason[];
  /** Sets of scopes, any of which the challenge may name. */
  readonly scopes?: readonly (readonly string[])[];
}

/** Holds refused requests against what was expected of them. */
export type CompareRefusal = (answer: Answer, accepted: readonly Refusal[], hasBody?: boolean) => readonly Deviation[];

/** Options of {@link refusals}. */
export interface RefusalRules {
  /** Whether a refusal has a problem body with a code (RFC 9457). */
  readonly problems: boolean;
  /** Whether 401s name their reason; `undefined`: as the first one does. */
  readonly exposeReasons: boolean | undefined;
}

const OPAQUE = 'invalid_token';
const PROBLEM = 'application/problem+json';

/**
 * Makes the rules for refused requests: status, challenge, problem body. A gate in production says only `invalid_token`
 * instead of the reason; which of the two it does has to be the same in every answer.
 */
export function refusals({ problems, exposeReasons }: RefusalRules): CompareRefusal {
  let exposed = exposeReasons;

  function codesOf({ error, codes }: Refusal, got: unknown): readonly unknown[] {
    if (error !== 'invalid_token') return codes;
    const isReason = codes.some((code) => code === got);
    if (exposed === undefined && (isReason || got === OPAQUE)) exposed = isReason;
    return exposed === false ? [OPAQUE] : codes;
  }

  function compareProblem({ status, headers, body }: Answer, refusal: Refusal): readonly Deviation[] {
    const type = mediaTypeOf(String(headers['content-type'] ?? 'none'));
    if (type !== PROBLEM) return [{ what: 'content type', got: type, expected: PROBLEM }];
    const problem = isRecord(body) ? body : {};
    const codes = codesOf(refusal, problem['code']);
    return differences([
      { what: 'status in the body', got: problem['status'], expected: status },
      { what: 'code', got: problem['code'], expected: oneOf(problem['code'], codes) },
    ]);
  }

  return function compareRefusal(answer, accepted, hasBody = true) {
    const refusal = accepted.find(({ status }) => status === answer.status);
    if (!refusal) {
      const statuses = accepted.map(({ status }) => status);
      return [{ what: 'status', got: answer.status, expected: oneOf(answer.status, statuses) }];
    }
    return [...compareBearer(answer, refusal), ...(problems && hasBody ? compareProblem(answer, refusal) : [])];
  };
}

function compareBearer({ headers }: Answer, { error, scopes }: Refusal): readonly Deviation[] {
  const header = headers['www-authenticate'];
  const challenge = header === undefined ? undefined : bearerChallenge(header);
  if (!challenge) return [{ what: 'challenge', got: header ?? 'none', expected: 'Bearer' }];
  const { error: got, scope } = challenge;
  return differences([
    { what: 'error of the challenge', got, expected: error },
    { what: 'scope of the challenge', got: scope, expected: scopeText(scope, scopes) },
  ]);
}

/** Order and blanks do not matter (RFC 6749 section 3.3): what fits is returned as it came. */
function scopeText(got: string | undefined, accepted: Refusal['scopes']): string | undefined {
  const sorted = (scopes: readonly string[]): string => [...new Set(scopes)].sort().join(' ');
  const named = got === undefined ? undefined : sorted(got.split(' ').filter(Boolean));
  return accepted?.some((scopes) => sorted(scopes) === named) ? got : accepted?.[0]?.join(' ');
}

/** What was got when it is among what is expected, else all of that. */
function oneOf(got: unknown, expected: readonly unknown[]): unknown {
  if (expected.includes(got)) return got;
  return expected.length === 1 ? expected[0] : expected.join(' or ');
}

function differences(deviations: readonly Deviation[]): readonly Deviation[] {
  return deviations.filter(({ got, expected }) => got !== expected);
}
