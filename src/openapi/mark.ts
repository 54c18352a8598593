import { GUARD } from '../express/guard';
import type { GuardRequirement, ScopeRequirement } from '../express/guard';

/** What a middleware is to somebody who reads routes. */
export type Mark =
  | { readonly kind: 'gate'; readonly optional: boolean }
  | { readonly kind: 'guard'; readonly requirement: ScopeRequirement | undefined }
  /** Takes errors only: no request reaches it by itself. */
  | { readonly kind: 'error handler' }
  | { readonly kind: 'handler' };

/**
 * Says what a middleware is, by the members that Tillgate gives its own: another copy of this package makes no
 * difference. A guard without a requirement asks for a claim, and for no scope.
 */
export function markOf(handle: object): Mark {
  const {
    [GUARD]: requirement,
    optional,
    ready,
    length,
  } = handle as {
    readonly [GUARD]?: GuardRequirement;
    readonly optional?: unknown;
    readonly ready?: unknown;
    readonly length?: unknown;
  };
  if (typeof optional === 'boolean' && typeof ready === 'function') return { kind: 'gate', optional };
  if (requirement) return { kind: 'guard', requirement: isOfScopes(requirement) ? requirement : undefined };
  return { kind: length === 4 ? 'error handler' : 'handler' };
}

function isOfScopes(requirement: GuardRequirement): requirement is ScopeRequirement {
  return Object.hasOwn(requirement, 'allOf') || Object.hasOwn(requirement, 'anyOf');
}

/** The paths that a middleware says it answers by itself. */
export function servedPathsOf(handle: object): readonly string[] {
  const { serves } = handle as { readonly serves?: readonly string[] };
  return serves ?? [];
}
