import type { LocatedOperation } from '../openapi/document';
import { describeMismatch, UNDOCUMENTED } from './responses';
import type { ApiResponse, DocumentedResponses, Mismatch } from './responses';

/** What the cases of one operation have seen so far. */
export interface Findings {
  /** Whether a case has called the operation. */
  isCalled: boolean;
  /** Statuses of responses to tokens that are good enough. */
  readonly accepted: Set<number>;
  /** The last response to a token that is good enough, in the 2xx. */
  good: ApiResponse | undefined;
  /** Ways in which responses differ from the document, by what they are. */
  readonly differences: Map<string, Mismatch>;
  /** Functions that were called before the guard of a refused request. */
  readonly beforeGuard: Set<string>;
  /** The refusals of attacks that were tried, by their names. */
  readonly refusals: Map<string, string>;
  /** Classes that have no case for the operation, with the reason. */
  readonly withoutCase: Map<string, string>;
  /** Whether attacks were left out because of a rate limit. */
  wasLimited: boolean;
}

/** Nothing seen yet. */
export function noFindings(): Findings {
  return {
    ...{ isCalled: false, accepted: new Set(), good: undefined, differences: new Map() },
    ...{ beforeGuard: new Set(), refusals: new Map(), withoutCase: new Map(), wasLimited: false },
  };
}

/** Notes how a response differs from what is expected; the first of its kind stays. */
export function noteDifference({ differences }: Findings, mismatch: Mismatch): void {
  const key = `${mismatch.what} ${String(mismatch.got)}`;
  if (!differences.has(key)) differences.set(key, mismatch);
}

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
  /** What in the `security` of the document looks like a mistake: writes for anybody, scopes that nothing requires. */
  readonly security: readonly string[];
  /** Operations that were attacked less, because a rate limit had not enough requests left for the other cases. */
  readonly limited: readonly string[];
  /** Classes of cases that have nothing to try, with the reason: `effect: it changes nothing: GET /orders and 3 more`. */
  readonly withoutCase: readonly string[];
  /** All of it as text. */
  toString(): string;
}

/** An operation with what its cases have seen. */
interface Reported {
  readonly name: string;
  readonly operation: Pick<LocatedOperation, 'isPublic' | 'alsoNeeds'>;
  readonly documented: DocumentedResponses;
  readonly findings: Findings;
}

/** What to add to a request that needs more than a token: `; its security also needs header X-Api-Key: ...`. */
export function adviceOnNeeds({ alsoNeeds }: Pick<LocatedOperation, 'alsoNeeds'>): string {
  if (alsoNeeds.length === 0) return '';
  return `; its security also needs ${alsoNeeds.join(' and ')}: give the value in "headers" or "requests"`;
}

/** Sums up what the cases have tested. */
export function contractReport(
  operations: readonly Reported[],
  others: {
    /** Operations without cases, with the reason. */
    readonly untestable: readonly string[];
    /** Public ones of other servers. */
    readonly elsewhere: readonly string[];
    readonly security: readonly string[];
  },
): ContractReport {
  const { untestable, elsewhere, security } = others;
  const guarded = operations.filter(({ operation }) => !operation.isPublic);
  const tested = guarded.filter((one) => whyNotTested(one) === undefined).map(({ name }) => name);
  const open = operations.filter(({ operation }) => operation.isPublic).map(({ name }) => name);
  const notTested = [
    ...guarded.flatMap((one) => {
      const why = whyNotTested(one);
      return why === undefined ? [] : [`${one.name}: ${why}`];
    }),
    ...untestable,
  ];
  const beforeGuard = operations.flatMap(({ name, findings }) =>
    findings.beforeGuard.size === 0 ? [] : [`${name}: ${[...findings.beforeGuard].join(', ')}`],
  );
  const limited = operations.filter(({ findings }) => findings.wasLimited).map(({ name }) => name);
  const report = {
    ...{
      tested,
      public: [...open, ...elsewhere],
      notTested,
      documentation: operations.flatMap(describeDifferences),
    },
    ...{ refusals: describeHabits(operations), beforeGuard, security, limited },
    withoutCase: byText(
      operations.flatMap(({ name, findings }) =>
        [...findings.withoutCase].map(([what, why]) => [`${what}: ${why}`, name] as const),
      ),
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
  ['security', 'Security requirements that look like mistakes'],
  ['limited', 'Operations attacked less because of a rate limit'],
  ['withoutCase', 'Classes of cases that have nothing to try'],
];

/** A refusal proves something only where the same request succeeds with a good token. */
function whyNotTested({ documented, findings: { isCalled, accepted }, operation }: Reported): string | undefined {
  if (!isCalled) return 'no case has called it; run its cases';
  if (accepted.size === 0) return 'no case has sent it a good token that was accepted; see its failing case, or run it';
  // A redirect is the success of an operation that documents no 2xx.
  const redirects = !documented.statuses.some((status) => status.startsWith('2'));
  const isSuccess = (status: number): boolean =>
    status < 300 || (redirects && status < 400 && documented.statuses.includes(String(status)));
  if ([...accepted].some(isSuccess)) return undefined;
  return `good tokens got ${[...accepted].join(', ')}; give values that exist in "requests"${adviceOnNeeds(operation)}`;
}

function describeDifferences({ name, findings }: Reported): readonly string[] {
  const all = [...findings.differences.values()].filter(({ isHabit }) => !isHabit);
  const statuses = all.filter(({ what }) => what === UNDOCUMENTED).map(({ got }) => String(got));
  const others = all.filter(({ what }) => what !== UNDOCUMENTED).map(describeMismatch);
  const missing =
    statuses.length === 0
      ? []
      : [`${statuses.sort().join(', ')} ${statuses.length === 1 ? 'is' : 'are'} not documented`];
  const found = [...missing, ...others];
  return found.length === 0 ? [] : [`${name}: ${found.join('; ')}`];
}

function describeHabits(operations: readonly Reported[]): readonly string[] {
  return byText(
    operations.flatMap(({ name, findings }) =>
      [...findings.differences.values()].flatMap((one) =>
        one.isHabit ? [[describeMismatch(one), name] as const] : [],
      ),
    ),
  );
}

/** One line for each text, with the first operation that it is about. */
function byText(all: readonly (readonly [text: string, operation: string])[]): readonly string[] {
  const names = new Map<string, string[]>();
  for (const [text, name] of all) names.set(text, [...(names.get(text) ?? []), name]);
  return [...names].map(([text, [first = '', ...others]]) =>
    [`${text}: ${first}`, ...(others.length > 0 ? [`and ${others.length} more`] : [])].join(' '),
  );
}
