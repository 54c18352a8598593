import type { ScopeRequirement } from '../express/require-scope';

/**
 * Writes what some alternatives of scopes ask for, always in the same way, so that two of them can be compared and
 * shown: `a and b`, `a or b`. Nothing asked for is the empty text.
 */
export function describeAlternatives(alternatives: readonly (readonly string[])[]): string {
  const texts = alternatives.map((scopes) => [...new Set(scopes)].sort().join(' and '));
  return [...new Set(texts)].sort().join(' or ');
}

/** The alternatives that pass one guard. */
export function alternativesOf(requirement: ScopeRequirement): readonly (readonly string[])[] {
  return 'anyOf' in requirement ? requirement.anyOf.map((scope) => [scope]) : [requirement.allOf];
}

/** The alternatives that pass several guards, one after the other. No guard asks for nothing: there is no alternative. */
export function combine(requirements: readonly ScopeRequirement[]): readonly (readonly string[])[] {
  if (requirements.length === 0) return [];
  return requirements
    .map(alternativesOf)
    .reduce((passed, next) => passed.flatMap((one) => next.map((other) => [...one, ...other])));
}
