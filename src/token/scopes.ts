import { AuthError } from '../core/auth-error';
import { isObject, ownValue } from '../core/objects';
import { isList } from '../core/options';

type Claims = Readonly<Record<string, unknown>>;

/** Reads the scopes of a token from its claims. */
export type ScopeReader = (claims: Claims) => readonly string[];

/** Where the server's names of permissions are, and which scopes they grant here. */
export interface ScopeRule {
  /** Paths of claims, whose names count together; `undefined`: the first present claim of the preset. */
  readonly from: readonly (readonly string[])[] | undefined;
  /** Names that are not in the map grant nothing; `undefined`: each name is a scope. */
  readonly map: ReadonlyMap<string, readonly string[]> | ScopeFunction | undefined;
}

/** Returns the scopes that the server's names grant. */
export type ScopeFunction = (names: readonly string[], claims: Claims) => readonly string[];

/**
 * Makes the function that reads the scopes of a token. What it returns under a rule are scope-tokens only (RFC 6749
 * section 3.3). A function of the app that throws, or returns anything but an array of them, refuses the token with an
 * AuthError `claim_refused`.
 */
export function scopeReader(presetClaims: readonly string[], rule?: ScopeRule): ScopeReader {
  if (!rule) return (claims) => readScopes(claims, presetClaims);
  const { from, map } = rule;
  const namesOf: ScopeReader = from
    ? (claims) => unique(from.flatMap((path) => namesAt(claims, path)))
    : (claims) => readScopes(claims, presetClaims);
  if (map === undefined) return (claims) => namesOf(claims).filter(isScopeToken);
  if (typeof map === 'function') return (claims) => mapByFunction(map, namesOf(claims), claims);
  return (claims) => unique(namesOf(claims).flatMap((name) => map.get(name) ?? []));
}

/**
 * Reads scopes from the first of the named claims that the token has: a space-separated string (RFC 6749 section 3.3)
 * or an array of strings. Anything else grants nothing: the token stays valid, and each guard responds with 403.
 */
export function readScopes(claims: Claims, names: readonly string[]): readonly string[] {
  const name = names.find((candidate) => Object.hasOwn(claims, candidate));
  return name === undefined ? [] : unique(namesIn(claims[name]));
}

/** RFC 6749 section 3.3: `scope-token = 1*( %x21 / %x23-5B / %x5D-7E )`. */
export function isScopeToken(text: string): boolean {
  return /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(text);
}

/** The names at a path of own members, where arrays have none. */
export function namesAt(claims: Claims, path: readonly string[]): readonly string[] {
  const value = path.reduce<unknown>((at, name) => (isObject(at) ? ownValue(at, name) : undefined), claims);
  return namesIn(value).filter((name) => name !== '');
}

function namesIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return value.split(' ');
  return isListOfStrings(value) ? value : [];
}

function mapByFunction(map: ScopeFunction, names: readonly string[], claims: Claims): readonly string[] {
  let scopes: unknown;
  try {
    scopes = map(Object.freeze([...names]), claims);
  } catch (cause) {
    throw new AuthError('claim_refused', { privateDetail: 'option scopes.map threw', cause });
  }
  // A copy, so that what was checked is what counts; it also turns holes into `undefined`.
  const copy: unknown = isList(scopes) ? [...scopes] : scopes;
  if (isListOfStrings(copy) && copy.every(isScopeToken)) return unique(copy);
  // The result of an async function: a rejection that nothing handles would end the process.
  void Promise.resolve(scopes).catch(() => undefined);
  throw new AuthError('claim_refused', { privateDetail: 'option scopes.map did not return an array of scopes' });
}

function isListOfStrings(value: unknown): value is readonly string[] {
  return isList(value) && value.every((entry) => typeof entry === 'string');
}

function unique(scopes: readonly string[]): readonly string[] {
  return [...new Set(scopes.filter((scope) => scope !== ''))];
}
