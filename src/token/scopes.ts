/**
 * Reads scopes from the first of the named claims that the token has: a space-separated string (RFC 6749 section 3.3)
 * or an array of strings. Anything else grants nothing: the token stays valid, and each guard responds with 403.
 */
export function readScopes(claims: Readonly<Record<string, unknown>>, names: readonly string[]): readonly string[] {
  const name = names.find((candidate) => Object.hasOwn(claims, candidate));
  const value = name === undefined ? undefined : claims[name];
  if (typeof value === 'string') return unique(value.split(' '));
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return unique(value);
  return [];
}

/** RFC 6749 section 3.3: `scope-token = 1*( %x21 / %x23-5B / %x5D-7E )`. */
export function isScopeToken(text: string): boolean {
  return /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(text);
}

function unique(scopes: readonly string[]): readonly string[] {
  return [...new Set(scopes.filter((scope) => scope !== ''))];
}
