import { escapeUnsafe } from 'tillgate/internal';
import type { CaseClass, ContractReport } from '@tillgate/testing';

/** One case that has failed. */
export interface Failure {
  /** Of its case. */
  readonly name: string;
  /** The attack that passed, where the case tried others of its class. */
  readonly attack?: string;
  readonly class: CaseClass;
  readonly operation: string | undefined;
  readonly differences: readonly string[];
  readonly request?: string;
  readonly response?: string;
  /** A command line that sends the request again. */
  readonly curl?: string;
  /** Line of the document that has the operation. */
  readonly line?: number;
  /** Whether the baseline has it. */
  readonly isKnown: boolean;
}

/** What a run has found. */
export interface Result {
  readonly url: string;
  readonly openapi: string;
  readonly cases: readonly { readonly name: string; readonly class: string | undefined }[];
  readonly failures: readonly Failure[];
  /** What was tested, and what is worth a look. */
  readonly report: Omit<ContractReport, 'toString'>;
}

/** The case that an operation fails which is open to anybody. */
const OPEN = ' refuses a request without a token';

/** Failures of one class with the same differences have one cause, and so have all of operations that are open. */
function byCause(failures: readonly Failure[]): readonly (readonly [Failure, ...Failure[]])[] {
  const groups = new Map<string, [Failure, ...Failure[]]>();
  const open = new Set(failures.filter(({ name }) => name.endsWith(OPEN)).map(({ operation }) => operation));
  for (const failure of failures) {
    const { differences, operation = '', name } = failure;
    const [path = ''] = operation.split(' ').slice(1);
    const sentence = name.slice(operation.length).replace(/ with(?:out)? .*$/, '');
    const cause = `${failure.class} ${sentence} ${differences[0]?.replaceAll(path, '').replace(/"[^"]*"|\d+ more|got \d+/g, '') ?? ''}`;
    const key = open.has(operation) && /^(token|scope)$/.test(failure.class) ? OPEN : cause;
    const group = groups.get(key);
    if (group) group.push(failure);
    else groups.set(key, [failure]);
  }
  return [...groups.values()];
}

/** More operations that were not tested are counted only. */
const LISTED = 20;

/** The three numbers: what a green run is worth. */
function accountOf({ tested, public: open, notTested }: Result['report']): string {
  return `${tested.length} operations tested, ${open.length} public by the document, ${notTested.length} not tested`;
}

/** The result for people. */
export function asText({ cases, failures, openapi, report }: Result): string {
  const { documentation, refusals, notTested, limited } = report;
  const fresh = failures.filter(({ isKnown }) => !isKnown);
  const blocks = byCause(fresh).map(([first, ...others]) => {
    const operations = [...new Set(others.map(({ operation, name }) => operation ?? name))];
    // A response is one line, whatever the server sends: it must not look like another result.
    return [
      `red ${first.class}: ${first.attack ?? first.name}`,
      ...first.differences.map((one) => escapeUnsafe(one.trim())),
      ...(first.line === undefined ? [] : [`${openapi}:${first.line}`]),
      ...(first.request === undefined
        ? []
        : [`> ${first.request}`, `< ${escapeUnsafe(first.response ?? '')}`, first.curl ?? '']),
      ...(others.length === 0 ? [] : [`and ${others.length} more: ${operations.slice(0, 5).join(', ')}`]),
    ].join('\n  ');
  });
  const known = failures.length - fresh.length;
  const listed =
    documentation.length === 0 ? [] : [`${documentation.length} operations respond otherwise than documented`];
  const sum = [
    `${cases.length} cases, ${fresh.length} red of ${blocks.length} causes`,
    ...(known > 0 ? [`${known} known by the baseline`] : []),
    ...listed,
  ].join(', ');
  const notes = [
    ...refusals.map((one) => `notice: ${one}`),
    ...limited.map((name) => `notice: ${name} was attacked less: the rate limit leaves too few requests`),
    ...notTested.slice(0, LISTED).map((one) => `not tested: ${one}`),
    ...(notTested.length > LISTED ? [`not tested: ${notTested.length - LISTED} more`] : []),
  ];
  const noted = notes.length === 0 ? [] : [notes.join('\n')];
  return [...blocks, ...noted, `${sum}\n${accountOf(report)}`].join('\n\n');
}
