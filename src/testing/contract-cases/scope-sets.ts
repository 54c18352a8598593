/** Scopes that a token has, with words for it. */
export interface ScopeSet {
  readonly name: string;
  readonly scopes: readonly string[];
}

/** More ways than this to leave out one scope of each alternative say nothing new. */
const MOST_WAYS = 24;

/** The sets that are just enough: each alternative of an operation. */
export function sufficientSets(alternatives: readonly (readonly string[])[]): readonly ScopeSet[] {
  return unique(
    alternatives.map((scopes) => ({
      name: scopes.length === 0 ? 'a token without scopes' : `a token with ${scopes.join(' and ')} alone`,
      scopes,
    })),
  );
}

/**
 * The sets that are not enough: none at all, each alternative with each of its scopes left out in turn, every scope that
 * the document knows but those, and names that only look like a required scope.
 */
export function insufficientSets(
  alternatives: readonly (readonly string[])[],
  declared: readonly string[],
): readonly ScopeSet[] {
  const isEnough = ({ scopes }: ScopeSet): boolean =>
    alternatives.some((all) => all.every((one) => scopes.includes(one)));
  const required = [...new Set(alternatives.flat())];
  const known = [...new Set([...declared, ...required])];
  const oneLess = alternatives.flatMap((scopes) =>
    scopes.map((missing) => {
      const left = scopes.filter((scope) => scope !== missing);
      return { name: `a token with ${left.join(' and ')}, without ${missing}`, scopes: left };
    }),
  );
  const allBut = waysOut(alternatives).map((missing) => ({
    name: `a token with every scope but ${missing.join(' and ')}`,
    scopes: known.filter((scope) => !missing.includes(scope)),
  }));
  const alike = required.flatMap((scope) => [`${scope}x`, `x${scope}`, scope.toUpperCase(), scope.replace(/.$/, '')]);
  const sets: readonly ScopeSet[] = [
    { name: 'a token without scopes', scopes: [] },
    ...oneLess,
    ...allBut,
    {
      name: `a token with names like ${required.join(' and ')}`,
      scopes: alike.filter((scope) => !required.includes(scope)),
    },
  ];
  return unique(sets.filter((set) => !isEnough(set)));
}

/** Every way to take one scope out of each alternative: what is left is never enough. */
function waysOut(alternatives: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const ways = alternatives.reduce<readonly (readonly string[])[]>(
    (sets, scopes) =>
      sets
        .flatMap((set) =>
          scopes.some((scope) => set.includes(scope)) ? [set] : scopes.map((scope) => [...set, scope]),
        )
        .slice(0, MOST_WAYS),
    [[]],
  );
  return ways.filter((way) => way.length > 0);
}

function unique(sets: readonly ScopeSet[]): readonly ScopeSet[] {
  const known = new Map(sets.toReversed().map((set) => [[...set.scopes].sort().join(' '), set]));
  return sets.filter((set) => known.get([...set.scopes].sort().join(' ')) === set);
}
