import type { TestToken } from '../issuer/test-token';
import type { ApiUnderTest } from './api';
import { bearer } from './credentials';
import type { TokenTransport } from './credentials';
import type { Findings } from './findings';
import type { Operation } from './operation';
import type { CaseClass } from './options';
import type { ApiRequest } from './responses';
import type { Exchange } from './target';

/** What a case works with. */
export interface Subject {
  readonly operation: Operation;
  readonly api: ApiUnderTest;
  readonly findings: Findings;
}

/** One requirement, with its test. */
export interface ContractCase {
  readonly name: string;
  /** What it is about: `token`, `scope`, `spelling`. */
  readonly class?: CaseClass;
  /** The operation that it is about: `GET /orders/{id}`. */
  readonly operation?: string;
  /** Rejects with an AssertionError (node:assert) when the requirement is not met. */
  readonly run: () => Promise<void>;
}

/** What the error of a failed case has besides its message. */
export interface CaseFailure {
  /** `status: expected 401, got 200`; `undefined` where a case is not about one request. */
  readonly differences?: readonly string[];
  readonly exchange?: Exchange;
}

/** Names a case after its operation. */
export function caseOf(
  { operation }: Subject,
  what: CaseClass,
  sentence: string,
  test: (name: string) => unknown,
): ContractCase {
  const name = `${operation.name} ${sentence}`;
  return { name, class: what, operation: operation.name, run: async () => void (await test(name)) };
}

/** Sends the request of an operation, changed. */
export async function send(
  { operation, api, findings }: Subject,
  { headers, query, caller }: TokenTransport,
  change: (request: ApiRequest) => ApiRequest = (request) => request,
): Promise<Exchange> {
  const prepared = operation.request();
  const separator = prepared.target.includes('?') ? '&' : '?';
  const target = query === undefined ? prepared.target : prepared.target + separator + query;
  const exchange = await api.call(change({ ...prepared, target, headers: { ...prepared.headers, ...headers } }));
  findings.of(operation).isCalled = true;
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
