import type { GuardRequirement } from '../express/guard';

/** Sets of scopes, each of which is sufficient. No set: nothing is required. An empty set: any token. */
export type Alternatives = readonly (readonly string[])[];

/**
 * Describes alternatives in a normal form that can be compared: `a and b`, `a or b`. Omits alternatives that another one
 * makes redundant. No scope is the empty text.
 */
export function describeAlternatives(alternatives: Alternatives): string {
  const sets = alternatives.map((scopes) => new Set(scopes));
  const needed = sets.filter(
    (set) => !sets.some((other) => other.size < set.size && [...other].every((scope) => set.has(scope))),
  );
  const texts = needed.map((scopes) => [...scopes].sort().join(' and '));
  return [...new Set(texts)].sort().join(' or ');
}

/** The alternatives that satisfy both. */
export function bothOf(a: Alternatives, b: Alternatives): Alternatives {
  return a.flatMap((one) => b.map((other) => [...one, ...other]));
}

/** The alternatives that satisfy a guard; one for a claim accepts any scopes. */
export function alternativesOf(requirement: GuardRequirement): Alternatives {
  if ('anyOf' in requirement) return requirement.anyOf.map((scope) => [scope]);
  return 'allOf' in requirement ? [requirement.allOf] : [[]];
}
