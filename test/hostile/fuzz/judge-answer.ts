import { parseChallenge } from '../support/strict-challenge';
import type { WireAnswer } from '../support/wire';

/** `error` of the challenge by status (RFC 6750 section 3.1); 401 without one says that no token was found. */
const ERRORS: Readonly<Record<number, readonly (string | undefined)[]>> = {
  400: ['invalid_request'],
  401: ['invalid_token', undefined],
  403: ['insufficient_scope'],
};

/**
 * Holds an answer of a gate against what must be true of every answer.
 *
 * @param right - whether the token is right; only then a 2xx may come
 * @param outage - whether a 503 may come
 * @throws Error that says what does not hold
 */
export function judgeAnswer(answer: WireAnswer | undefined, right: boolean, outage = false): number | undefined {
  if (answer === undefined) return undefined;
  const { status, headers } = answer;
  if (status < 300 && !right) throw new Error(`a ${status} without a right token`);
  if (status >= 500 && !(outage && status === 503)) throw new Error(`a ${status}`);
  const challenges = headers.get('www-authenticate') ?? [];
  const code = codeOf(answer);
  // What cannot be read is refused before the gate, and some requests by the contract: neither is about a token.
  const ofGate =
    status === 401 || status === 403 || (status === 400 && code !== undefined && code !== 'invalid_request');
  if (challenges.length !== (ofGate ? 1 : 0)) throw new Error(`${challenges.length} challenges in a ${status} ${code}`);
  if (ofGate) judgeChallenge(challenges[0] ?? '', status);
  return status;
}

function judgeChallenge(text: string, status: number): void {
  const { scheme, parameters } = parseChallenge(text);
  const error = parameters.get('error');
  if (scheme !== 'Bearer' || !ERRORS[status]?.includes(error)) throw new Error(`in a ${status}: ${text}`);
}

/** `code` of the problem body. */
export function codeOf({ headers, body }: WireAnswer): string | undefined {
  if (headers.get('content-type')?.[0] !== 'application/problem+json; charset=utf-8') return undefined;
  return (JSON.parse(body) as { code: string }).code;
}
