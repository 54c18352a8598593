import { claimAt, readClaimPath, type ClaimPath } from '../core/claim-path';
import { isList, isObject } from '../core/objects';
import { option, refuseOption, type OptionPlace, type TableOf } from '../core/options';
import { freezeJson, parseJson, parseJsonObject, type JsonObject } from '../net/strict-json';

/** Where scopes come from, and what the names of the authorization server are called here. */
export interface ScopeOptions {
  /**
   * Claims whose names count together: strings of space-separated names, or arrays. `'realm_access.roles'` is a claim in
   * another one; a claim whose own name contains dots is written as a path: `['https://example.com/roles']`. With a
   * `prefix`, which is put before each of its names, those of two claims stay apart. Default: the first present claim of
   * the preset.
   */
  readonly from?:
    | readonly (string | readonly string[] | { readonly claim: string | readonly string[]; readonly prefix: string })[]
    | undefined;
  /** The scopes that each name grants; a name that is not in it grants nothing. Default: each name is a scope. */
  readonly map?: Readonly<Record<string, string | readonly string[]>> | undefined;
}

/** Reads the scopes of a token from its claims. */
type ScopeReader = (claims: JsonObject) => readonly string[];

/** A claim by its path, and what is put before each of its names. */
export interface ScopeClaim {
  readonly path: ClaimPath;
  readonly prefix: string;
}

/** Where the server's names of permissions are, and which scopes they grant here. */
export interface ScopeRule {
  /** Claims whose names count together; `undefined`: the first present claim of the preset. */
  readonly from: readonly ScopeClaim[] | undefined;
  /** Names that are not in the map grant nothing; `undefined`: each name is a scope. */
  readonly map: ReadonlyMap<string, readonly string[]> | undefined;
}

/** Makes the function that reads the scopes of a token: under a rule scope-tokens only (RFC 6749 section 3.3). */
export function scopeReader(presetClaims: readonly string[], rule?: ScopeRule): ScopeReader {
  if (!rule) return (claims) => readScopes(claims, presetClaims);
  const { from, map } = rule;
  const namesOf: ScopeReader = from
    ? (claims) => unique(from.flatMap((claim) => namesOfClaim(claims, claim)))
    : (claims) => readScopes(claims, presetClaims);
  if (map === undefined) return (claims) => namesOf(claims).filter(isScopeToken);
  return (claims) => unique(namesOf(claims).flatMap((name) => map.get(name) ?? []));
}

/**
 * Reads scopes from the first of the named claims that the token has: a space-separated string (RFC 6749 section 3.3)
 * or an array of strings. Anything else grants nothing: the token stays valid, and each guard responds with 403.
 */
function readScopes(claims: JsonObject, names: readonly string[]): readonly string[] {
  for (const name of names) if (claims[name] !== undefined) return unique(namesIn(claims[name]));
  return [];
}

/** RFC 6749 section 3.3: `scope-token = 1*( %x21 / %x23-5B / %x5D-7E )`. */
export function isScopeToken(text: string): boolean {
  return /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(text);
}

/** The names at a path of own members, where arrays have none. */
export function namesAt(claims: JsonObject, path: ClaimPath): readonly string[] {
  return namesIn(claimAt(claims, path)).filter((name) => name !== '');
}

/** The names of a claim, each with its prefix. */
export function namesOfClaim(claims: JsonObject, { path, prefix }: ScopeClaim): readonly string[] {
  return namesAt(claims, path).map((name) => prefix + name);
}

function namesIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return value.split(' ');
  return isList(value) && value.every((entry) => typeof entry === 'string') ? value : [];
}

/** What a claim is that should hold names, and does not by its type: `an array with an object`. `undefined`: it can, or is absent. */
export function wrongTypeAt(claims: JsonObject, path: ClaimPath): string | undefined {
  const value = claimAt(claims, path);
  if (value === undefined || typeof value === 'string') return undefined;
  if (!isList(value)) return typeOf(value);
  const odd = value.findIndex((entry) => typeof entry !== 'string');
  return odd < 0 ? undefined : `an array with ${typeOf(value[odd])}`;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return typeof value === 'object' ? `an ${isList(value) ? 'array' : 'object'}` : `a ${typeof value}`;
}

function unique(scopes: readonly string[]): readonly string[] {
  const set = new Set(scopes);
  set.delete('');
  return [...set];
}

/** The option `scopes` of `authenticate()`. */
export const SCOPES_OPTION = option.nested(
  {
    from: option('a non-empty array of claims', readFrom, undefined, {
      expected:
        'claims between commas or blanks, such as permissions or realm_access.roles; if a name contains dots itself, JSON: ["scope",["https://example.com/roles"]]',
      convert: (text) =>
        freezeJson(text.startsWith('[') ? parseJson(Buffer.from(text)) : text.split(/[\s,]+/).filter(Boolean)),
    }),
    map: option('an object with the scopes of each name', readMap, undefined, {
      expected: 'a JSON object with the scope, or an array of the scopes, that each name grants',
      convert: (text) => freezeJson(parseJsonObject(Buffer.from(text))),
    }),
  } satisfies TableOf<ScopeOptions>,
  (scopes, at): ScopeRule => {
    if (scopes.from || scopes.map) return scopes;
    return refuseOption(at, 'an object with from, map or both', {});
  },
);

function readFrom(given: unknown, at: OptionPlace): ScopeRule['from'] {
  return isList(given) && given.length > 0 ? given.map((claim) => readClaim(claim, at)) : undefined;
}

function readClaim(given: unknown, at: OptionPlace): ScopeClaim {
  if (!isObject(given)) return { path: readPath(given, at), prefix: '' };
  const { claim, prefix, ...others } = given;
  if (typeof prefix === 'string' && isScopeToken(prefix) && Object.keys(others).length === 0) {
    return { path: readPath(claim, at), prefix };
  }
  return refuseOption(at, 'claims as { claim: "realm_access.roles", prefix: "realm:" }', given);
}

/** A name with dots that looks like a URL is refused: it could be meant as a path, and would grant nothing. */
function readPath(claim: unknown, at: OptionPlace): ClaimPath {
  const path = readClaimPath(claim);
  if (!path) return refuseOption(at, 'an array of claims: names, or paths such as "realm_access.roles"', claim);
  if (typeof claim !== 'string' || path.length > 1 || !claim.includes('.')) return path;
  return refuseOption(
    at,
    `an array of claims; write ${JSON.stringify(path)} for one whose own name contains dots`,
    claim,
  );
}

/** A `Map` has no members: it would grant nothing, silently. */
function readMap(map: unknown, { factory, name: option }: OptionPlace): ScopeRule['map'] {
  const entries = isObject(map) ? Object.entries(map) : [];
  if (entries.length === 0) return undefined;
  return new Map(
    entries.map(([name, scopes]) => {
      const list: unknown = typeof scopes === 'string' ? [scopes] : scopes;
      const fits = isList(list) && [...list].every((scope) => typeof scope === 'string' && isScopeToken(scope));
      const at = { factory, name: `${option}[${JSON.stringify(name)}]` };
      if (!fits) refuseOption(at, 'a scope without blanks, or an array of them', scopes);
      return [name, Object.freeze([...(list as string[])])];
    }),
  );
}
