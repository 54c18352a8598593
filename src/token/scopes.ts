/**
 * Reads scopes from the first of the named claims that the token has: a space-separated string (RFC 6749 section 3.3)
 * or an array of strings. Anything else grants nothing: the token stays valid, and each guard answers 403.
 */
export function readScopes(claims: Readonly<Record<string, unknown>>, names: readonly string[]): readonly string[] {
  const name = names.find((candidate) => Object.hasOwn(claims, candidate));
  const value = name === undefined ? undefined : claims[name];
  if (typeof value === 'string') return unique(value.split(' '));
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return unique(value);
  return [];
}

/** Up to here looking through a list is quicker than a set. */
const SHORT_LIST = 16;
const sets = new WeakMap<readonly string[], ReadonlySet<string>>();

/**
 * Whether a scope was granted. Scopes compare as whole strings: `orders` is no part of `orders:read`.
 *
 * @param granted - a list that does not change: a long one is turned into a set once
 */
export function isGranted(granted: readonly string[], scope: string): boolean {
  if (granted.length <= SHORT_LIST) return granted.includes(scope);
  const known = sets.get(granted) ?? new Set(granted);
  sets.set(granted, known);
  return known.has(scope);
}

/** RFC 6749 section 3.3: `scope-token = 1*( %x21 / %x23-5B / %x5D-7E )`. */
export function isScopeToken(text: string): boolean {
  return /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(text);
}

function unique(scopes: readonly string[]): readonly string[] {
  return [...new Set(scopes.filter((scope) => scope !== ''))];
}
