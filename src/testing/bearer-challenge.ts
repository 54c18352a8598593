/** The parameters of one challenge, by name. */
export type ChallengeParameters = Readonly<Record<string, string>>;

/** A scheme that begins a challenge, a parameter, or what stands between them (RFC 9110 section 11.6.1). */
const PART = /([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))|([\w!#$%&'*+.^`|~-]+)|[\s,]+/gy;

/** Reads the Bearer challenge out of a `WWW-Authenticate` header, which may offer other schemes as well. */
export function bearerChallenge(header: string): ChallengeParameters | undefined {
  const challenges: { readonly scheme: string; readonly parameters: Record<string, string> }[] = [];
  for (const [, name, quoted, plain, scheme] of header.matchAll(PART)) {
    if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), parameters: {} });
    const parameters = challenges.at(-1)?.parameters;
    if (name === undefined || !parameters) continue;
    parameters[name.toLowerCase()] = quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '';
  }
  return challenges.find(({ scheme }) => scheme === 'bearer')?.parameters;
}
