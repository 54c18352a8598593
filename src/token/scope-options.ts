import { isObject, ownMembers } from '../core/objects';
import { describe, isList, readOptions } from '../core/options';
import { isScopeToken } from './scopes';
import type { ScopeRule } from './scopes';

/** Where scopes come from, and what the names of the authorization server are called here. */
export interface ScopeOptions {
  /**
   * Claims whose names count together: strings of space-separated names, or arrays. `'realm_access.roles'` is a claim in
   * another one; a claim whose own name contains dots is written as a path: `['https://example.com/roles']`. Default: the
   * first present claim of the preset.
   */
  readonly from?: readonly (string | readonly string[])[] | undefined;
  /**
   * The scopes that each name grants; a name that is not in it grants nothing. Or a function that returns the scopes: if
   * it throws, or returns anything but an array of scopes, the token is refused with 403. Default: each name is a scope.
   */
  readonly map?:
    | Readonly<Record<string, string | readonly string[]>>
    | ((names: readonly string[], claims: Readonly<Record<string, unknown>>) => readonly string[])
    | undefined;
}

/**
 * Checks the option `scopes` of `authenticate()`.
 *
 * @throws TypeError
 */
export function readScopeRule(options: ScopeOptions): ScopeRule {
  const read = readOptions('authenticate', options, ['from', 'map'], 'scopes');
  if (!read.has('from') && !read.has('map')) throw wrong('', 'an object with from, map or both', options);
  const { from, map } = ownMembers(options);
  return {
    from: from === undefined ? undefined : readPaths(from),
    map: map === undefined || typeof map === 'function' ? map : readMap(map),
  };
}

function readPaths(from: unknown): readonly (readonly string[])[] {
  if (!isList(from) || from.length === 0) throw wrong('.from', 'a non-empty array of claims', from);
  return from.map(readPath);
}

function readPath(claim: unknown): readonly string[] {
  const path: unknown = typeof claim === 'string' ? claim.split('.') : claim;
  if (!isList(path) || path.length === 0 || !path.every((name) => typeof name === 'string' && name !== '')) {
    throw wrong('.from', 'an array of claims: names, or paths such as "realm_access.roles"', claim);
  }
  // A name that is a URL: its dots separate nothing.
  if (typeof claim === 'string' && path.length > 1 && /[/:]/.test(claim)) {
    const asPath = JSON.stringify([claim]);
    throw wrong('.from', `an array of claims; write ${asPath} for one whose own name contains dots`, claim);
  }
  return [...(path as string[])];
}

function readMap(map: unknown): ReadonlyMap<string, readonly string[]> {
  const entries = isObject(map) ? Object.entries(map) : [];
  // A Map has no members: it would grant nothing, silently.
  if (entries.length === 0) throw wrong('.map', 'a function, or an object with the scopes of each name', map);
  return new Map(entries.map(([name, scopes]) => [name, readMapped(name, scopes)]));
}

function readMapped(name: string, scopes: unknown): readonly string[] {
  const list: unknown = typeof scopes === 'string' ? [scopes] : scopes;
  const fits = isList(list) && [...list].every((scope) => typeof scope === 'string' && isScopeToken(scope));
  if (!fits) throw wrong(`.map[${JSON.stringify(name)}]`, 'a scope without blanks, or an array of them', scopes);
  return Object.freeze([...(list as string[])]);
}

function wrong(member: string, expected: string, got: unknown): TypeError {
  return new TypeError(`authenticate(): option "scopes${member}" must be ${expected}, got ${describe(got)}`);
}
