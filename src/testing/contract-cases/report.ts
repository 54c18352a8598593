import type { LocatedOperation } from '../../openapi/document';
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

/** Records what the cases reach. */
export interface Coverage {
  /** A response to any case of an operation. */
  received(operation: LocatedOperation, status: number): void;
  /** A valid response to a token that is good enough. */
  accepted(operation: LocatedOperation, status: number): void;
  report(this: void): ContractReport;
}

/** Starts with nothing reached. */
export function coverage(
  operations: readonly LocatedOperation[],
  responsesOf: (operation: LocatedOperation) => DocumentedResponses,
  notTested: readonly string[],
): Coverage {
  const entries = new Map(
    operations.map((operation) => {
      const seen = { statuses: new Set<string>(), accepted: new Set<number>() };
      return [operation, { name: nameOf(operation), documented: responsesOf(operation), ...seen }] as const;
    }),
  );

  return {
    received(operation, status) {
      const entry = entries.get(operation);
      entry?.statuses.add(entry.documented.entryOf(status) ?? String(status));
    },
    accepted: (operation, status) => void entries.get(operation)?.accepted.add(status),
    report() {
      const all = [...entries.values()];
      const lists = {
        notCalled: all.filter(({ statuses }) => statuses.size === 0).map(({ name }) => name),
        withoutSuccess: all
          .filter(({ accepted }) => accepted.size > 0 && Math.min(...accepted) >= 300)
          .map(({ name, accepted }) => `${name} responded ${[...accepted].join(', ')}`),
        responsesNotSeen: all.flatMap(({ name, documented, statuses }) => {
          return documented.statuses.filter((status) => !statuses.has(status)).map((status) => `${name} ${status}`);
        }),
        notTested,
      };
      return { ...lists, toString: () => toText(lists) };
    },
  };
}

/** The name of an operation: `GET /orders/{id}`. */
export function nameOf({ method, path }: LocatedOperation): string {
  return `${method} ${path}`;
}

function toText({ notCalled, withoutSuccess, responsesNotSeen, notTested }: Omit<ContractReport, 'toString'>): string {
  const sections = [
    ['Operations that no case has called', notCalled],
    ['Operations without a 2xx', withoutSuccess],
    ['Documented responses that no case has received', responsesNotSeen],
    ['Operations protected by something else than bearer tokens', notTested],
  ] as const;
  return sections.map(([title, lines]) => [`${title}: ${lines.length}`, ...lines].join('\n  ')).join('\n');
}
