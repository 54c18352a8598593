import type { TokenTransport } from './credentials';
import type { Operation } from './operation';
import type { Id } from './requests';
import type { ApiResponse, Mismatch } from './responses';
import type { Exchange } from './target';

/** Somebody who may not call an operation, and how its plain request is refused. */
export type Caller = readonly [who: string, transport: TokenTransport, plain: ApiResponse | undefined];

/** What the cases of an API have seen so far. */
export interface Findings {
  readonly of: (operation: Operation) => OperationFindings;
  /** Ids of objects that a case has made, by the path to them: `/orders/{}`. */
  readonly made: Map<string, Id>;
  /** Refused requests: a late handler of theirs is found at the end. */
  readonly refused: Refused[];
  /** Requests of the cases that are not attacks: a rate limit must leave them. */
  reserve: number;
}

/** What the cases of one operation have seen. */
export class OperationFindings {
  /** Whether a case has called the operation. */
  isCalled = false;
  /** Statuses of responses to tokens that are good enough. */
  readonly accepted = new Set<number>();
  /** The last response to a token that is good enough, in the 2xx. */
  good: ApiResponse | undefined;
  /** Why responses to a request that is good enough prove nothing, and what to do. */
  notTested: string | undefined;
  /** Ways in which responses differ from the document, by what they are. */
  readonly differences = new Map<string, Mismatch>();
  /** Functions that were called before the guard of a refused request. */
  readonly beforeGuard = new Set<string>();
  /** The refusals of attacks that were tried, by their names. */
  readonly refusals = new Map<string, string>();
  /** Classes that have no case for the operation, with the reason. */
  readonly withoutCase = new Map<string, string>();
  /** Whether attacks were left out because of a rate limit. */
  wasLimited = false;
  /** Refusals that say how the API is made. */
  readonly leaks: { readonly text: string; readonly exchange: Exchange }[] = [];
  /** Callers who may not call it, once they are known. */
  weakCallers?: Promise<readonly Caller[]>;
  /** Whether it takes tokens of the issuer, once that is known. */
  takesTokens?: Promise<boolean>;
}

/** A refused request whose handlers may still be called. */
interface Refused {
  /** Name of the case. */
  readonly name: string;
  readonly reached: () => readonly string[];
  /** How many entries of `reached` the case has checked itself. */
  readonly checked: number;
}

/** Nothing seen yet. */
export function noFindings(reserve = 0): Findings {
  const known = new Map<Operation, OperationFindings>();
  function of(operation: Operation): OperationFindings {
    const found = known.get(operation) ?? new OperationFindings();
    known.set(operation, found);
    return found;
  }
  return { of, made: new Map(), refused: [], reserve };
}

/** Notes how a response differs from what is expected; the first of its kind stays. */
export function noteDifference({ differences }: OperationFindings, mismatch: Mismatch): void {
  const key = `${mismatch.what} ${String(mismatch.got)}`;
  if (!differences.has(key)) differences.set(key, mismatch);
}
