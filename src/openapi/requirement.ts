import type { ScopeRequirement } from '../express/guard';

/** Some sets of scopes, each of which is enough. None at all: nothing is asked for. An empty set: a token, no scope. */
export type Alternatives = readonly (readonly string[])[];

/**
 * Writes what some alternatives of scopes ask for, always in the same way, so that two of them can be compared and
 * shown: `a and b`, `a or b`. What another alternative makes superfluous is left out. No scope is the empty text.
 */
export function describeAlternatives(alternatives: Alternatives): string {
  const sets = alternatives.map((scopes) => new Set(scopes));
  const needed = sets.filter(
    (set) => !sets.some((other) => other.size < set.size && [...other].every((scope) => set.has(scope))),
  );
  const texts = needed.map((scopes) => [...scopes].sort().join(' and '));
  return [...new Set(texts)].sort().join(' or ');
}

/** The alternatives that pass one guard; a guard without a requirement asks for no scope. */
export function alternativesOf(requirement: ScopeRequirement | undefined): Alternatives {
  if (!requirement) return [[]];
  return 'anyOf' in requirement ? requirement.anyOf.map((scope) => [scope]) : [requirement.allOf];
}

/** The alternatives that pass several guards, one after the other. No guard asks for nothing: there is no alternative. */
export function combine(requirements: readonly (ScopeRequirement | undefined)[]): Alternatives {
  if (requirements.length === 0) return [];
  return requirements.map(alternativesOf).reduce((passed, next) => bothOf(passed, next));
}

/** The alternatives that are enough for two that ask for something. */
export function bothOf(a: Alternatives, b: Alternatives): Alternatives {
  return a.flatMap((one) => b.map((other) => [...one, ...other]));
}
