/** One auth-param of a challenge; a value of `undefined` leaves the parameter out. */
export type ChallengeParameter = readonly [name: string, value: string | undefined];

/**
 * Serialises a challenge for `WWW-Authenticate` (RFC 9110 section 11.6.1). Any text is safe as a value: what cannot
 * stand in a header is replaced, never passed on.
 */
export function serializeChallenge(scheme: 'Bearer' | 'Basic', parameters: readonly ChallengeParameter[]): string {
  let challenge: string = scheme;
  let separator = ' ';
  for (const [name, value] of parameters) {
    if (value === undefined) continue;
    challenge += `${separator}${name}=${quote(value)}`;
    separator = ', ';
  }
  return challenge;
}

/**
 * Writes an RFC 9110 section 5.6.4 quoted-string. Quotes and backslashes are escaped; control characters and
 * everything beyond ASCII become `?`, because neither CR LF nor obs-text may reach a header.
 */
export function quote(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/gu, '?').replace(/["\\]/g, '\\$&')}"`;
}
