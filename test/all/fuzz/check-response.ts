import { parseChallenge } from '../../support/strict-challenge';
import type { WireResponse } from '../../gate/hostile/support/wire';

/** `error` of the challenge by status (RFC 6750 section 3.1); 401 without one says that no token was found. */
const ERRORS: Readonly<Record<number, readonly (string | undefined)[]>> = {
  400: ['invalid_request'],
  401: ['invalid_token', undefined],
  403: ['insufficient_scope'],
};

/**
 * Checks what must be true of every response of a gate.
 *
 * @param right - whether the token is good; only then a 2xx is allowed
 * @param outage - whether a 503 is allowed
 * @throws Error that names the violated property
 */
export function checkResponse(response: WireResponse | undefined, right: boolean, outage = false): number | undefined {
  if (response === undefined) return undefined;
  const { status, headers } = response;
  if (status < 300 && !right) throw new Error(`a ${status} without a right token`);
  if (status >= 500 && !(outage && status === 503)) throw new Error(`a ${status}`);
  const challenges = headers.get('www-authenticate') ?? [];
  const code = codeOf(response);
  // Unreadable requests are refused before the gate, invalid ones after it: these 400s have no challenge.
  const ofGate =
    status === 401 || status === 403 || (status === 400 && code !== undefined && code !== 'invalid_request');
  if (challenges.length !== (ofGate ? 1 : 0)) throw new Error(`${challenges.length} challenges in a ${status} ${code}`);
  if (ofGate) checkChallenge(challenges[0] ?? '', status);
  return status;
}

function checkChallenge(text: string, status: number): void {
  const { scheme, parameters } = parseChallenge(text);
  const error = parameters.get('error');
  if (scheme !== 'Bearer' || !ERRORS[status]?.includes(error)) throw new Error(`in a ${status}: ${text}`);
}

/** `code` of the problem body. */
export function codeOf({ headers, body }: WireResponse): string | undefined {
  if (headers.get('content-type')?.[0] !== 'application/problem+json; charset=utf-8') return undefined;
  return (JSON.parse(body) as { code: string }).code;
}
