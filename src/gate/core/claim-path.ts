import { isObject, ownValue } from './objects';

/** The names on the way to a claim, which can be a member of another one. */
export type ClaimPath = readonly string[];

/**
 * Reads a path: names between dots, or an array of names. A text with `/` or `:` is one name, as of a URL, whose dots
 * separate nothing. `undefined` for anything else.
 */
export function readClaimPath(given: unknown): ClaimPath | undefined {
  const path: unknown = typeof given === 'string' ? (/[/:]/.test(given) ? [given] : given.split('.')) : given;
  const names: readonly unknown[] = Array.isArray(path) ? [...(path as unknown[])] : [];
  const fits = names.length > 0 && names.every((name) => typeof name === 'string' && name !== '');
  return fits ? Object.freeze(names as string[]) : undefined;
}

/** The value at a path of own members, where arrays have none; `undefined`: the token has no such claim. */
export function claimAt(claims: unknown, path: ClaimPath): unknown {
  return path.reduce((at, name) => (isObject(at) ? ownValue(at, name) : undefined), claims);
}
