import type { DocumentedResponses } from './documented-responses';

/** What the cases that have run so far did not reach. Every list is in the order of the cases. */
export interface ContractReport {
  /** Operations that no case has called. */
  readonly notCalled: readonly string[];
  /** Operations whose gate accepted good tokens, but none of them got a 2xx: `POST /orders responded 409`. */
  readonly withoutSuccess: readonly string[];
  /** Documented responses that no case has received: `GET /orders 404`. */
  readonly responsesNotSeen: readonly string[];
  /** Operations without cases, because they are protected by something else than bearer tokens. */
  readonly notTested: readonly string[];
  /** All of it as text. */
  toString(): string;
}

/** What the cases of one operation have reached so far. */
export interface Reached {
  /** `GET /orders/{id}` */
  readonly name: string;
  readonly documented: DocumentedResponses;
  /** Documented entries to which a response belonged, and statuses that are not documented. */
  readonly seen: Set<string>;
  /** Statuses of valid responses to tokens that are good enough. */
  readonly accepted: Set<number>;
}

/** Sums up what the cases have reached. */
export function contractReport(operations: readonly Reached[], notTested: readonly string[]): ContractReport {
  const notCalled = operations.filter(({ seen }) => seen.size === 0).map(({ name }) => name);
  const withoutSuccess = operations
    .filter(({ accepted }) => accepted.size > 0 && Math.min(...accepted) >= 300)
    .map(({ name, accepted }) => `${name} responded ${[...accepted].join(', ')}`);
  const responsesNotSeen = operations.flatMap(({ name, documented, seen }) => {
    return documented.statuses.filter((status) => !seen.has(status)).map((status) => `${name} ${status}`);
  });
  const sections: readonly (readonly [title: string, lines: readonly string[]])[] = [
    ['Operations that no case has called', notCalled],
    ['Operations without a 2xx', withoutSuccess],
    ['Documented responses that no case has received', responsesNotSeen],
    ['Operations protected by something else than bearer tokens', notTested],
  ];
  const toString = (): string =>
    sections.map(([title, lines]) => [`${title}: ${lines.length}`, ...lines].join('\n  ')).join('\n');
  return { notCalled, withoutSuccess, responsesNotSeen, notTested, toString };
}
