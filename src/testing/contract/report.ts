import type { Findings, OperationFindings } from './findings';
import { NO_OWNER } from './objects';
import { adviceOnNeeds } from './operation';
import type { Operation } from './operation';
import { describeMismatch, UNDOCUMENTED } from './responses';

/** What the cases that have run so far have tested. Every list is in the order of the cases. */
export interface ContractReport {
  /** Protected operations whose cases have run, and that sent a 2xx to a good token. */
  readonly tested: readonly string[];
  /** Operations that the document opens to anybody. */
  readonly public: readonly string[];
  /** The other ones, with the reason and what to do: `GET /orders/{id}: good tokens got 404; ...`. */
  readonly notTested: readonly string[];
  /**
   * What the document lacks or says otherwise, one entry for each operation: `GET /orders: 401, 403 are not documented`.
   * With `strict` it fails the case of the operation.
   */
  readonly documentation: readonly string[];
  /** Where the refusals of the API depart from RFC 6750, one entry for each way: `status of a refusal: expected 403, got 401`. */
  readonly refusals: readonly string[];
  /** Functions that were called before the guard of a refused request: `POST /orders: saveOrder`. */
  readonly beforeGuard: readonly string[];
  /** Operations that were attacked less, because a rate limit had not enough requests left for the other cases. */
  readonly limited: readonly string[];
  /** Operations with `x-owner` that have no case about it, with the reason: `GET /tabs/{id}: no POST makes an object for id`. */
  readonly ownersNotTested: readonly string[];
  /** Classes of cases that have nothing to try, with the reason: `effect: it changes nothing: GET /orders and 3 more`. */
  readonly withoutCase: readonly string[];
  /** All of it as text. */
  toString(): string;
}

/** Sums up what the cases have tested. */
export function contractReport(operations: readonly Operation[], findings: Findings): ContractReport {
  const counted = operations.filter((one) => !one.isPublic || findings.of(one).notTested !== undefined);
  const guarded = counted.map((operation) => ({ name: operation.name, why: whyNotTested(operation, findings) }));
  const seen = operations.map((operation) => ({ name: operation.name, found: findings.of(operation) }));
  const report = {
    tested: guarded.filter(({ why }) => why === undefined).map(({ name }) => name),
    public: operations.filter((one) => !counted.includes(one)).map(({ name }) => name),
    notTested: guarded.filter(({ why }) => why !== undefined).map(({ name, why }) => `${name}: ${why}`),
    documentation: seen.flatMap(({ name, found }) => describeDifferences(name, found)),
    refusals: byText(seen.flatMap(({ name, found }) => habitsOf(found).map((text) => [text, name]))),
    beforeGuard: seen
      .filter(({ found }) => found.beforeGuard.size > 0)
      .map(({ name, found }) => `${name}: ${[...found.beforeGuard].join(', ')}`),
    limited: seen.filter(({ found }) => found.wasLimited).map(({ name }) => name),
    ownersNotTested: seen.flatMap(({ name, found }) => {
      const why = found.withoutCase.get('object') ?? NO_OWNER;
      return why === NO_OWNER ? [] : [`${name}: ${why}`];
    }),
    withoutCase: byText(
      seen.flatMap(({ name, found }) => [...found.withoutCase].map(([what, why]) => [`${what}: ${why}`, name])),
    ),
  };
  const toString = (): string =>
    TITLES.map(([list, title]) => [`${title}: ${report[list].length}`, ...report[list]].join('\n  ')).join('\n');
  return { ...report, toString };
}

const TITLES: readonly (readonly [list: Exclude<keyof ContractReport, 'toString'>, title: string])[] = [
  ['tested', 'Operations tested'],
  ['public', 'Operations that are public by the document'],
  ['notTested', 'Operations not tested'],
  ['documentation', 'Operations that respond otherwise than documented'],
  ['refusals', 'Refusals that depart from RFC 6750'],
  ['beforeGuard', 'Functions that ran before a guard'],
  ['limited', 'Operations attacked less because of a rate limit'],
  ['ownersNotTested', 'Operations whose x-owner is not tested'],
  ['withoutCase', 'Classes of cases that have nothing to try'],
];

/** A refusal proves something only where the same request succeeds with a good token. */
function whyNotTested(operation: Operation, findings: Findings): string | undefined {
  const { access, documented } = operation;
  if (access === 'elsewhere') return 'it has servers of its own; test it there, with "url"';
  if (access === 'other') return 'no requirement of its security is met by a bearer token; test it by hand';
  const { isCalled, accepted, notTested } = findings.of(operation);
  if (notTested !== undefined) return notTested;
  if (!isCalled) return 'no case has called it; run its cases';
  if (accepted.size === 0) return 'no case has sent it a good token that was accepted; see its failing case, or run it';
  // A redirect is the success of an operation that documents no 2xx.
  const redirects = !documented.statuses.some((status) => status.startsWith('2'));
  const isSuccess = (status: number): boolean =>
    status < 300 || (redirects && status < 400 && documented.statuses.includes(String(status)));
  if ([...accepted].some(isSuccess)) return undefined;
  return `good tokens got ${[...accepted].join(', ')}; give values that exist in "requests"${adviceOnNeeds(operation)}`;
}

function describeDifferences(name: string, { differences }: OperationFindings): readonly string[] {
  const all = [...differences.values()].filter(({ isHabit }) => !isHabit);
  const statuses = all.filter(({ what }) => what === UNDOCUMENTED).map(({ got }) => String(got));
  const others = all.filter(({ what }) => what !== UNDOCUMENTED).map(describeMismatch);
  const verb = statuses.length === 1 ? 'is' : 'are';
  const missing = statuses.length === 0 ? [] : [`${statuses.sort().join(', ')} ${verb} not documented`];
  const texts = [...missing, ...others];
  return texts.length === 0 ? [] : [`${name}: ${texts.join('; ')}`];
}

function habitsOf({ differences }: OperationFindings): readonly string[] {
  return [...differences.values()].filter(({ isHabit }) => isHabit).map(describeMismatch);
}

/** One line for each text, with the first operation that it is about. */
function byText(all: readonly (readonly [text: string, operation: string])[]): readonly string[] {
  const names = new Map<string, string[]>();
  for (const [text, name] of all) names.set(text, [...(names.get(text) ?? []), name]);
  return [...names].map(([text, [first = '', ...others]]) =>
    [`${text}: ${first}`, ...(others.length > 0 ? [`and ${others.length} more`] : [])].join(' '),
  );
}
