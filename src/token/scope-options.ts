import { isObject } from '../core/objects';
import { isList, nested, option, refuseOption } from '../core/options';
import type { OptionPlace, TableOf } from '../core/options';
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

/** The option `scopes` of `authenticate()`. */
export const SCOPES_OPTION = nested(
  {
    from: option('a non-empty array of claims', (given, at) => {
      return isList(given) && given.length > 0 ? given.map((claim) => readPath(claim, at)) : undefined;
    }),
    map: option('a function, or an object with the scopes of each name', readMap),
  } satisfies TableOf<ScopeOptions>,
  (scopes, at): ScopeRule => {
    if (scopes.from || scopes.map) return scopes;
    return refuseOption(at, 'an object with from, map or both', {});
  },
);

function readPath(claim: unknown, at: OptionPlace): readonly string[] {
  const path: unknown = typeof claim === 'string' ? claim.split('.') : claim;
  if (!isList(path) || path.length === 0 || !path.every((name) => typeof name === 'string' && name !== '')) {
    return refuseOption(at, 'an array of claims: names, or paths such as "realm_access.roles"', claim);
  }
  // A name that is a URL: its dots separate nothing.
  if (typeof claim === 'string' && path.length > 1 && /[/:]/.test(claim)) {
    const asPath = JSON.stringify([claim]);
    refuseOption(at, `an array of claims; write ${asPath} for one whose own name contains dots`, claim);
  }
  return [...(path as string[])];
}

/** A `Map` has no members: it would grant nothing, silently. */
function readMap(map: unknown, { factory, name: option }: OptionPlace): ScopeRule['map'] {
  if (typeof map === 'function') return map as ScopeRule['map'];
  const entries = isObject(map) ? Object.entries(map) : [];
  if (entries.length === 0) return undefined;
  return new Map(
    entries.map(([name, scopes]) => [
      name,
      readMapped({ factory, name: `${option}[${JSON.stringify(name)}]` }, scopes),
    ]),
  );
}

function readMapped(at: OptionPlace, scopes: unknown): readonly string[] {
  const list: unknown = typeof scopes === 'string' ? [scopes] : scopes;
  const fits = isList(list) && [...list].every((scope) => typeof scope === 'string' && isScopeToken(scope));
  if (!fits) refuseOption(at, 'a scope without blanks, or an array of them', scopes);
  return Object.freeze([...(list as string[])]);
}
