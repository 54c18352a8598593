import type { LocatedOperation } from '../../openapi/document';
import type { Answer } from './client';
import type { DocumentedAnswers } from './documented-answers';

/** What the cases that have run so far did not reach. Every list is sorted as the document is. */
export interface ContractReport {
  /** Operations that no case has called. */
  readonly notCalled: readonly string[];
  /** Operations whose gate let good tokens pass, but none of them to a 2xx: `POST /orders answered 409`. */
  readonly withoutSuccess: readonly string[];
  /** Documented answers that were not seen: `GET /orders 404`. */
  readonly answersNotSeen: readonly string[];
  /** Operations that something else than bearer tokens protects: there are no cases for them. */
  readonly notJudged: readonly string[];
  /** All of it as text. */
  toString(): string;
}

/** Notes what was reached. */
export interface Coverage {
  /** An answer to any case of an operation. */
  saw(operation: LocatedOperation, answer: Answer): void;
  /** An answer to a token that is good enough. */
  passed(operation: LocatedOperation, answer: Answer): void;
  report(this: void): ContractReport;
}

/** What is known of one operation. */
interface Entry {
  readonly name: string;
  readonly answers: DocumentedAnswers;
  readonly seen: Set<string>;
  readonly passed: Set<number>;
  called: boolean;
}

/** Starts with nothing reached. */
export function coverage(
  operations: readonly LocatedOperation[],
  answersOf: (operation: LocatedOperation) => DocumentedAnswers,
  notJudged: readonly string[],
): Coverage {
  const entries = new Map<LocatedOperation, Entry>();
  for (const operation of operations) {
    const name = nameOf(operation);
    entries.set(operation, {
      name,
      answers: answersOf(operation),
      seen: new Set(),
      passed: new Set(),
      called: false,
    });
  }

  function reportOf(): ContractReport {
    const all = [...entries.values()];
    const lists = {
      notCalled: all.filter(({ called }) => !called).map(({ name }) => name),
      withoutSuccess: all.filter(lacksSuccess).map(({ name, passed }) => `${name} answered ${[...passed].join(', ')}`),
      answersNotSeen: all.flatMap(({ name, answers, seen }) => {
        return answers.statuses.filter((status) => !seen.has(status)).map((status) => `${name} ${status}`);
      }),
      notJudged,
    };
    return { ...lists, toString: () => write(lists) };
  }

  return {
    saw(operation, { status }) {
      const entry = entries.get(operation);
      if (!entry) return;
      entry.called = true;
      entry.seen.add(entry.answers.entryOf(status) ?? String(status));
    },
    passed: (operation, { status }) => void entries.get(operation)?.passed.add(status),
    report: reportOf,
  };
}

/** What an operation is called: `GET /orders/{id}`. */
export function nameOf({ method, path }: LocatedOperation): string {
  return `${method} ${path}`;
}

function lacksSuccess({ passed }: Entry): boolean {
  return passed.size > 0 && ![...passed].some((status) => status < 300);
}

function write({ notCalled, withoutSuccess, answersNotSeen, notJudged }: Omit<ContractReport, 'toString'>): string {
  const sections = [
    ['Operations that no case has called', notCalled],
    ['Operations without a 2xx', withoutSuccess],
    ['Documented answers that were not seen', answersNotSeen],
    ['Operations that something else than bearer tokens protects', notJudged],
  ] as const;
  return sections.map(([title, lines]) => [`${title}: ${lines.length}`, ...lines].join('\n  ')).join('\n');
}
