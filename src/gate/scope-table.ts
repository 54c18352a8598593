import { describe, didYouMean, nearest } from '../core/options';
import { isObject, ownMembers } from '../core/objects';
import { isGranted, readScopeList, scopesOf } from './scope-requirement';
import type { ScopeRequirement } from './scope-requirement';

/** What one declared scope means beside itself. */
export interface ScopeDeclaration {
  /** Scopes that it grants too, and what these imply. */
  readonly implies?: readonly string[] | undefined;
  /** It is the old name of this scope. */
  readonly replacedBy?: string | undefined;
  /** Day on which the old name stops to work, in UTC: `2027-03-01`. */
  readonly until?: string | undefined;
  /** Day on which the old name was deprecated, in UTC. Default: `1970-01-01`, long ago. */
  readonly since?: string | undefined;
}

/** An old name of a scope, and its last moment. */
export interface OldName {
  readonly scope: string;
  readonly replacedBy: string;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** A scope that grants another one. */
interface Grant {
  readonly scope: string;
  readonly old?: OldName;
}

const FACTORY = 'defineScopes';
const MEMBERS = ['implies', 'replacedBy', 'until', 'since'];

/** The scopes of an API with what they imply and replace. Everything is worked out once. */
export class ScopeTable {
  /** The current names. */
  readonly scopes: readonly string[];
  readonly #oldNames = new Map<string, OldName>();
  /** By scope: the other scopes that grant it. */
  readonly #grants = new Map<string, Grant[]>();

  /** @throws TypeError when a declaration is wrong, or implications go round in a circle */
  constructor(given: unknown) {
    const declared = isObject(given) ? Object.entries(ownMembers(given)) : undefined;
    if (!declared) {
      this.scopes = readScopeList(given, FACTORY);
      return;
    }
    const implies = new Map<string, readonly string[]>();
    for (const [name, declaration] of declared) this.#declare(name, declaration, implies);
    const names = [...new Set([...implies.keys(), ...[...implies.values()].flat()])];
    for (const old of this.#oldNames.values()) this.#requireCurrent(old, names);
    this.scopes = readScopeList(names, FACTORY);
    for (const scope of this.scopes) {
      for (const implied of closure(scope, implies)) this.#grant(implied, { scope });
    }
    for (const old of this.#oldNames.values()) {
      const grant = { scope: old.scope, old };
      for (const scope of [old.replacedBy, ...closure(old.replacedBy, implies)]) this.#grant(scope, grant);
    }
  }

  #declare(name: string, declaration: unknown, implies: Map<string, readonly string[]>): void {
    const what = `${JSON.stringify(name)}: `;
    readScopeList([name], FACTORY);
    if (!isObject(declaration))
      throw wrong(`${what}expected an object such as { implies: [...] }, got ${describe(declaration)}`);
    const unknown = Object.keys(declaration).find((member) => !MEMBERS.includes(member));
    if (unknown !== undefined)
      throw wrong(`${what}unknown member ${JSON.stringify(unknown)}${didYouMean(unknown, MEMBERS)}`);
    const { implies: implied, replacedBy, until, since = '1970-01-01' } = ownMembers(declaration as ScopeDeclaration);
    if (replacedBy === undefined) {
      if (until !== undefined) throw wrong(`${what}"until" is for old names, with "replacedBy"`);
      implies.set(name, implied === undefined ? [] : readScopeList(implied, FACTORY, `${what}implies: `));
      return;
    }
    if (implied !== undefined) throw wrong(`${what}an old name implies what its replacement does: remove "implies"`);
    const sinceMs = dayOf(since, `${what}since`);
    this.#oldNames.set(name, { scope: name, replacedBy, sinceMs, untilMs: dayOf(until, `${what}until`) });
  }

  #requireCurrent({ scope, replacedBy }: OldName, current: readonly string[]): void {
    if (current.includes(replacedBy)) return;
    const why = this.#oldNames.has(replacedBy) ? 'is an old name itself' : 'is not declared';
    throw wrong(
      `${JSON.stringify(scope)}: replacedBy ${JSON.stringify(replacedBy)} ${why}${nearest(replacedBy, current) ?? '; declare it'}`,
    );
  }

  #grant(scope: string, grant: Grant): void {
    this.#grants.set(scope, [...(this.#grants.get(scope) ?? []), grant]);
  }

  /** @throws TypeError when a scope of a route is not a current name */
  requireKnown(scopes: readonly string[]): void {
    const unknown = scopes.find((scope) => !this.scopes.includes(scope));
    if (unknown === undefined) return;
    const name = JSON.stringify(unknown);
    const replacement = this.#oldNames.get(unknown)?.replacedBy;
    throw new TypeError(
      replacement === undefined
        ? `requireScope(): ${name} is not one of the defined scopes${didYouMean(unknown, this.scopes)}`
        : `requireScope(): ${name} is an old name; require ${JSON.stringify(replacement)}, which accepts it until it ends`,
    );
  }

  /** The requirement as granted scopes satisfy it; `undefined` where they do not. `old`: by an old name. */
  satisfiedBy(
    granted: readonly string[],
    requirement: ScopeRequirement,
    nowMs: number,
  ): { readonly old: OldName | undefined } | undefined {
    const grantOf = (scope: string): { readonly old: OldName | undefined } | undefined => {
      if (isGranted(granted, scope)) return { old: undefined };
      const usable = (this.#grants.get(scope) ?? []).filter(
        (grant) => isGranted(granted, grant.scope) && (!grant.old || nowMs < grant.old.untilMs),
      );
      return currentFirst(usable.map(({ old }) => ({ old })));
    };
    const grants = scopesOf(requirement).map(grantOf);
    const given = grants.filter((grant) => grant !== undefined);
    if (Object.hasOwn(requirement, 'anyOf')) return currentFirst(given);
    return given.length === grants.length ? { old: given.find(({ old }) => old)?.old } : undefined;
  }
}

/** A current name makes an old one needless. */
function currentFirst<One extends { readonly old: unknown }>(grants: readonly One[]): One | undefined {
  return grants.find(({ old }) => !old) ?? grants[0];
}

/** Everything that a scope implies, without itself. */
function closure(scope: string, implies: ReadonlyMap<string, readonly string[]>, path = [scope]): Set<string> {
  const found = new Set<string>();
  for (const implied of implies.get(scope) ?? []) {
    if (path.includes(implied)) throw wrong(`${[...path, implied].join(' implies ')}: a circle; remove one of them`);
    found.add(implied);
    for (const further of closure(implied, implies, [...path, implied])) found.add(further);
  }
  return found;
}

function dayOf(given: unknown, what: string): number {
  const ms = typeof given === 'string' && /^\d{4}-\d\d-\d\d$/.test(given) ? Date.parse(given) : NaN;
  const isReal = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(given as string);
  if (!isReal) throw wrong(`${what}: expected a day such as "2027-03-01", got ${describe(given)}`);
  return ms;
}

function wrong(message: string): TypeError {
  return new TypeError(`${FACTORY}(): ${message}`);
}
