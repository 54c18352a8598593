import type { ScopeRequirement } from '../express/require-scope';

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
  const { requirement, claim, optional, ready, length } = handle as {
    readonly requirement?: ScopeRequirement;
    readonly claim?: unknown;
    readonly optional?: unknown;
    readonly ready?: unknown;
    readonly length?: unknown;
  };
  if (typeof optional === 'boolean' && typeof ready === 'function') return { kind: 'gate', optional };
  if (requirement !== undefined || typeof claim === 'string') return { kind: 'guard', requirement };
  return { kind: length === 4 ? 'error handler' : 'handler' };
}

/** The paths that a middleware says it answers by itself. */
export function servedPathsOf(handle: object): readonly string[] {
  const { serves } = handle as { readonly serves?: readonly string[] };
  return serves ?? [];
}
