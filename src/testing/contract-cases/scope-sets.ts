/** The scopes of a token, with a description of it. */
export interface ScopeSet {
  readonly name: string;
  readonly scopes: readonly string[];
}

/** Alternatives, each of which requires all of its scopes. */
type Alternatives = readonly (readonly string[])[];

/** Limits the combinations of scopes that are left out, one of each alternative. */
const MAX_COMBINATIONS = 24;

/** The smallest sufficient sets: each alternative of an operation. */
export function sufficientSets(alternatives: Alternatives): readonly ScopeSet[] {
  const sets = alternatives.map((scopes) => {
    return {
      name: scopes.length === 0 ? 'a token without scopes' : `a token with only ${scopes.join(' and ')}`,
      scopes,
    };
  });
  return withoutRepeats(sets);
}

/**
 * Insufficient sets: no scope, each alternative without each of its scopes in turn, every other scope of the document,
 * and names that only resemble a required scope.
 */
export function insufficientSets(alternatives: Alternatives, declared: readonly string[]): readonly ScopeSet[] {
  const isSufficient = ({ scopes }: ScopeSet): boolean =>
    alternatives.some((all) => all.every((one) => scopes.includes(one)));
  const required = [...new Set(alternatives.flat())];
  const known = [...new Set([...declared, ...required])];
  const similar = required.flatMap((scope) => [`${scope}x`, `x${scope}`, scope.toUpperCase(), scope.slice(0, -1)]);
  const sets: readonly ScopeSet[] = [
    { name: 'a token without scopes', scopes: [] },
    ...alternatives.flatMap((scopes) =>
      scopes.map((missing) => {
        const left = scopes.filter((scope) => scope !== missing);
        return { name: `a token with ${left.join(' and ')}, without ${missing}`, scopes: left };
      }),
    ),
    ...combinationsLeftOut(alternatives).map((missing) => ({
      name: `a token with every scope except ${missing.join(' and ')}`,
      scopes: known.filter((scope) => !missing.includes(scope)),
    })),
    {
      name: `a token with names similar to ${required.join(' and ')}`,
      scopes: similar.filter((scope) => scope !== '' && !required.includes(scope)),
    },
  ];
  return withoutRepeats(sets.filter((set) => !isSufficient(set)));
}

/** Every way to leave out one scope of each alternative; the scopes that remain are never sufficient. */
function combinationsLeftOut(alternatives: Alternatives): Alternatives {
  let combinations: Alternatives = [[]];
  for (const scopes of alternatives) {
    const extended = combinations.flatMap((left) =>
      scopes.some((scope) => left.includes(scope)) ? [left] : scopes.map((scope) => [...left, scope]),
    );
    combinations = extended.slice(0, MAX_COMBINATIONS);
  }
  return combinations.filter((left) => left.length > 0);
}

function withoutRepeats(sets: readonly ScopeSet[]): readonly ScopeSet[] {
  const keys = sets.map(({ scopes }) => [...scopes].sort().join(' '));
  return sets.filter((_set, index) => keys.indexOf(keys[index] as string) === index);
}
