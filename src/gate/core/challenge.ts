/** One auth-param of a challenge; a value of `undefined` leaves the parameter out. */
export type ChallengeParameter = readonly [name: string, value: string | undefined];

/** Serialises a challenge (RFC 9110 section 11.6.1). Any value is safe: what cannot be in a header is replaced. */
export function serializeChallenge(
  scheme: 'Bearer' | 'Basic' | 'DPoP',
  parameters: readonly ChallengeParameter[],
): string {
  let challenge: string = scheme;
  let separator = ' ';
  for (const [name, value] of parameters) {
    if (value === undefined) continue;
    challenge += `${separator}${name}=${quote(value)}`;
    separator = ', ';
  }
  return challenge;
}

/** Writes a quoted-string (RFC 9110 section 5.6.4); control characters and everything beyond ASCII become `?`. */
export function quote(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/gu, '?').replace(/["\\]/g, '\\$&')}"`;
}

/** Clients and proxies limit the head of a response, many to 8 KB. */
const MAX_CHALLENGE_LENGTH = 2_048;

/**
 * The first scopes of a list that have room in a challenge, none of them cut; `undefined` where the first one has none. The
 * problem body has all of them.
 *
 * @param otherLength - that of the challenge without scopes
 */
export function fittingScopes(scopes: readonly string[], otherLength: number): string | undefined {
  const room = MAX_CHALLENGE_LENGTH - otherLength;
  let end = 0;
  let length = -1;
  // The quotation marks of `quote()` count as the separator.
  while (end < scopes.length && (length += quote(scopes[end] as string).length - 1) <= room) end++;
  return end === 0 && scopes.length > 0 ? undefined : scopes.slice(0, end).join(' ');
}

/** What challenges say about DPoP, where it is accepted (RFC 9449 section 7.1). */
export interface DpopChallenge {
  /** Accepted algorithms of proofs, separated by spaces. */
  readonly algorithms: string;
  /** Whether the error is about a request with the DPoP scheme; the Bearer challenge is left out then. */
  readonly used: boolean;
}

/** Both challenges where both schemes are accepted; the error is in that of the scheme that the request used. */
export function challengeOf(parameters: readonly ChallengeParameter[], dpop: DpopChallenge | undefined): string {
  if (!dpop) return serializeChallenge('Bearer', parameters);
  const algorithms = ['algs', dpop.algorithms] as const;
  if (dpop.used) return serializeChallenge('DPoP', [...parameters, algorithms]);
  return `${serializeChallenge('Bearer', parameters)}, ${serializeChallenge('DPoP', [algorithms])}`;
}
