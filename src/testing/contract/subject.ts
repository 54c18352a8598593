import { AssertionError } from 'node:assert';
import type { TestToken } from '../issuer/test-token';
import type { ApiUnderTest } from './api';
import { bearer } from './credentials';
import type { TokenTransport } from './credentials';
import type { Findings } from './findings';
import type { Operation } from './operation';
import type { CaseClass } from './options';
import { shapeOfPath, withIds } from './requests';
import { internalsIn, REFUSALS } from './responses';
import type { ApiRequest } from './responses';
import type { Exchange } from './target';

/** What a case works with. */
export interface Subject {
  readonly operation: Operation;
  readonly api: ApiUnderTest;
  readonly findings: Findings;
}

/** One test: all requirements of a class at an operation. */
export interface ContractCase {
  readonly name: string;
  /** What it is about: `token`, `scope`, `spelling`. */
  readonly class?: CaseClass;
  /** The operation that it is about: `GET /orders/{id}`. */
  readonly operation?: string;
  /** Rejects with an AssertionError (node:assert) that lists the requirements that are not met. */
  readonly run: () => Promise<void>;
}

/** One requirement: `refuses a token without scopes`, with its test. */
export type Part = readonly [sentence: string, test: (name: string) => unknown];

/** One requirement that is not met. */
export interface CaseFailure {
  /** `GET /orders refuses a token without scopes` */
  readonly name: string;
  /** `status: expected 401, got 200`; `undefined` where a case is not about one request. */
  readonly differences: readonly string[];
  readonly exchange?: Exchange;
}

/** Names a case after its operation. */
export function caseOf({ operation }: Subject, what: CaseClass, does: string, parts: readonly Part[]): ContractCase {
  const name = `${operation.name} ${does}`;

  async function run(): Promise<void> {
    const failures: CaseFailure[] = [];
    for (const [own, test] of parts) {
      try {
        await test(`${operation.name} ${own}`);
      } catch (error) {
        failures.push(...failuresIn(error, `${operation.name} ${own}`));
      }
    }
    if (failures.length === 0) return;
    const lines = failures.flatMap((one) =>
      one.name === name ? one.differences : [`${one.name}: ${one.differences.join('; ')}`],
    );
    const actual = failures.map((one) => one.name);
    const error = new AssertionError({
      message: [name, ...lines].join('\n  '),
      actual,
      expected: [],
      operator: 'equal',
    });
    throw Object.assign(error, { failures });
  }
  return { name, class: what, operation: operation.name, run };
}

/** What the error of a case says, one entry for each requirement that is not met. */
export function failuresIn(error: unknown, name: string): readonly CaseFailure[] {
  const { message, failures, exchange } = error as Error & Partial<CaseFailure> & { failures?: readonly CaseFailure[] };
  if (failures) return failures;
  if (!(error instanceof AssertionError)) return [{ name, differences: [message] }];
  const [title = name, ...differences] = message.split('\n').map((line) => line.trim());
  return [{ name: title, differences, ...(exchange && { exchange }) }];
}

/** The request of an operation, with the ids of objects that cases have made. */
export function requestOf({ operation, findings }: Subject): ApiRequest {
  const parts = shapeOfPath(operation.path).split('/');
  const known = parts.flatMap((_, at) => {
    const id = findings.made.get(parts.slice(0, at + 1).join('/'));
    return id === undefined ? [] : [[at, id] as const];
  });
  return withIds(operation.request(), operation.path, new Map(known));
}

/** Sends the request of an operation, changed. */
export async function send(
  subject: Subject,
  { headers, query, caller }: TokenTransport,
  change?: (request: ApiRequest) => ApiRequest,
): Promise<Exchange> {
  const { operation, api, findings } = subject;
  const prepared = requestOf(subject);
  const separator = prepared.target.includes('?') ? '&' : '?';
  const target = query === undefined ? prepared.target : prepared.target + separator + query;
  const plain = { ...prepared, target, headers: { ...prepared.headers, ...headers } };
  const exchange = await api.call(change?.(plain) ?? plain);
  const found = findings.of(operation);
  found.isCalled = true;
  const refused = change === undefined ? REFUSALS : REFUSALS.slice(1);
  const what = refused.includes(exchange.response.status)
    ? internalsIn(exchange.request, exchange.response)
    : undefined;
  const text = `with ${caller ?? 'no token'}, the refusal contains "${what}"`;
  if (what !== undefined) found.leaks.push({ text, exchange });
  return { ...exchange, caller };
}

/** A good token with these scopes, unless `others` make it a bad one. */
export function tokenWith({ api }: Subject, scopes: readonly string[] = [], others: TestToken = {}): TokenTransport {
  const caller = scopes.length === 0 ? 'a token without scopes' : `a token with ${scopes.join(' and ')}`;
  const scope = scopes.length === 0 ? undefined : scopes.join(' ');
  return { ...bearer(api.settings.issuer.token({ scope, ...others })), caller };
}

/** A token with the scopes of the first alternative. */
export function sufficient(subject: Subject, others?: TestToken): TokenTransport {
  return tokenWith(subject, subject.operation.security[0], others);
}

/** One after the other. */
export async function eachOf<One, Result>(
  all: readonly One[],
  look: (one: One) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const one of all) results.push(await look(one));
  return results;
}
