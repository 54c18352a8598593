import { describe } from '../core/words';
import { isScopeToken } from '../token/scopes';

/** Scopes that a route requires: all of them, or any one of them. */
export type ScopeRequirement = { readonly allOf: readonly string[] } | { readonly anyOf: readonly string[] };

/**
 * Reads the arguments of `requireScope()`: scopes, a list of them, or `{ anyOf: [...] }`.
 *
 * @throws TypeError
 */
export function readRequirement(args: readonly unknown[], factory = 'requireScope'): ScopeRequirement {
  const [first] = args;
  if (args.length === 1 && Array.isArray(first)) return { allOf: readScopeList(first, factory) };
  if (args.length === 1 && typeof first === 'object' && first !== null) {
    if (Object.keys(first).join() !== 'anyOf') throw new TypeError(`${factory}(): expected { anyOf: [...] }`);
    const { anyOf } = first as { anyOf: unknown };
    return { anyOf: readScopeList(anyOf, factory, Array.isArray(anyOf) ? '' : 'anyOf must be an array: ') };
  }
  return { allOf: readScopeList(args, factory) };
}

/**
 * Reads a list of scopes, each of them once; frozen.
 *
 * @throws TypeError when it is empty, or one is not a scope-token (RFC 6749 section 3.3)
 */
export function readScopeList(scopes: unknown, factory: string, what = ''): readonly string[] {
  if (!Array.isArray(scopes) || scopes.length === 0) {
    throw new TypeError(`${factory}(): ${what}expected at least one scope, got ${describe(scopes)}`);
  }
  for (const scope of scopes) {
    if (typeof scope === 'string' && isScopeToken(scope)) continue;
    const several = typeof scope === 'string' && scope.includes(' ') ? '; write each scope as a string of its own' : '';
    throw new TypeError(
      `${factory}(): ${what}expected a scope without blanks, quotes and backslashes, got ${describe(scope)}${several}`,
    );
  }
  return Object.freeze([...new Set(scopes as string[])]);
}

/** The scopes of a requirement, whether all of them are required or any one. */
export function scopesOf(requirement: ScopeRequirement): readonly string[] {
  return isAnyOf(requirement) ? requirement.anyOf : requirement.allOf;
}

/** Whether granted scopes are enough. */
export function satisfies(granted: readonly string[], requirement: ScopeRequirement): boolean {
  return isAnyOf(requirement)
    ? requirement.anyOf.some((scope) => isGranted(granted, scope))
    : requirement.allOf.every((scope) => isGranted(granted, scope));
}

const MAX_SCOPES = 4;
/** A token can have thousands. */
const MAX_LOOKED = 200;

/**
 * `needs orders:write, has orders:read and 3 more`; of the granted scopes those of the same resource come first, and one that
 * differs in case only is named as such.
 */
export function describeLack(granted: readonly string[], requirement: ScopeRequirement): string {
  const needed = scopesOf(requirement);
  const resources = needed.map(resourceOf);
  const looked = granted.slice(0, MAX_LOOKED);
  const near = looked.filter((scope) => resources.includes(resourceOf(scope)));
  const needs = `needs ${isAnyOf(requirement) && needed.length > 1 ? 'one of ' : ''}${listed(needed)}`;
  const alike = looked.find((scope) => {
    return !needed.includes(scope) && needed.some((one) => one.toLowerCase() === scope.toLowerCase());
  });
  const hint = alike === undefined ? '' : `; scopes are compared by case, and ${listed([alike])} is another one`;
  return `${needs}, has ${listed(near.length > 0 ? near : granted, granted.length)}${hint}${joinedHint(looked)}`;
}

/** Scopes in one name, which no guard can match. */
function joinedHint(granted: readonly string[]): string {
  const joined = granted.find((name) => /[,; ]/.test(name));
  if (joined === undefined) return '';
  return joined.includes(' ')
    ? '; one member of an array has several scopes: have the issuer make each a member of its own'
    : '; scopes are joined by commas: have the issuer put blanks between them (RFC 6749 section 3.3)';
}

/** `orders` of `orders:write`. */
function resourceOf(scope: string): string {
  return scope.replace(/[:.][^:.]*$/, '').toLowerCase();
}

function listed(scopes: readonly string[], total = scopes.length): string {
  const shown = scopes.slice(0, MAX_SCOPES).map((scope) => scope.slice(0, 80));
  const others = total - shown.length;
  return `${shown.join(' ') || 'none'}${others > 0 ? ` and ${others} more` : ''}`;
}

/** Not `'anyOf' in requirement`: a polluted prototype would make every requirement one of no scopes. */
function isAnyOf(requirement: ScopeRequirement): requirement is { readonly anyOf: readonly string[] } {
  return Object.hasOwn(requirement, 'anyOf');
}

/** Up to this length a list is faster than a set. */
const SHORT_LIST = 16;
/** The lists are frozen, so each long one is turned into a set once. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>();

/** Whether a scope was granted. Scopes compare as whole strings: `orders` is not part of `orders:read`. */
export function isGranted(granted: readonly string[], scope: string): boolean {
  if (granted.length <= SHORT_LIST) return granted.includes(scope);
  const known = sets.get(granted) ?? new Set(granted);
  sets.set(granted, known);
  return known.has(scope);
}
