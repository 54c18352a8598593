import { setTimeout as wait } from 'node:timers/promises';
import type { LocatedOperation } from '../../openapi/document';
import type { Call } from './app-target';
import { ATTACKS, bearer } from './attacks';
import type { Addition } from './attacks';
import type { Answer, Outgoing } from './client';
import { assertNone } from './deviation';
import type { Deviation } from './deviation';
import type { DocumentedAnswers } from './documented-answers';
import type { ContractSettings } from './options';
import type { CompareRefusal, Refusal } from './refusal';
import { nameOf } from './report';
import type { Coverage } from './report';
import type { PreparedRequest } from './sample-request';
import { insufficientSets, sufficientSets } from './scope-sets';

/** One sentence about an API, with the test that holds it to it. */
export interface ContractCase {
  readonly name: string;
  /** Rejects with an AssertionError (node:assert) when the API breaks the sentence. */
  readonly run: () => Promise<void>;
}

/** What the cases of one operation are made from. */
export interface Bench {
  readonly settings: ContractSettings;
  readonly call: Call;
  readonly coverage: Coverage;
  readonly compareRefusal: CompareRefusal;
  readonly declaredScopes: readonly string[];
  readonly answers: DocumentedAnswers;
  /** Made when it is first needed. */
  prepare(): PreparedRequest;
}

const RETRY_MS = 50;

/** Lists the cases of one operation. */
export function operationCases(operation: LocatedOperation, bench: Bench): readonly ContractCase[] {
  const { settings, coverage, answers } = bench;
  const { issuer } = settings;
  const alternatives = operation.security;

  function toCase(sentence: string, test: (name: string) => Promise<void>): ContractCase {
    const name = `${nameOf(operation)} ${sentence}`;
    return { name, run: () => test(name) };
  }

  async function call(addition: Addition) {
    const result = await bench.call(add(bench.prepare(), addition));
    coverage.saw(operation, result.answer);
    return result;
  }

  async function refuse(addition: Addition, accepted: readonly Refusal[]): Promise<readonly Deviation[]> {
    const { answer, reached } = await call(addition);
    const deviations = bench.compareRefusal(answer, accepted, operation.method !== 'HEAD');
    return [...deviations, ...compareReached(reached), ...answers.compare(answer)];
  }

  async function refuseSoon(addition: Addition, accepted: readonly Refusal[], forMs: number) {
    const deadlineMs = performance.now() + forMs;
    let deviations = await refuse(addition, accepted);
    while (deviations.length > 0 && performance.now() < deadlineMs) {
      await wait(RETRY_MS);
      deviations = await refuse(addition, accepted);
    }
    return deviations;
  }

  async function pass(name: string, addition: Addition): Promise<void> {
    const { answer } = await call(addition);
    const deviations = [...comparePassage(answer), ...answers.compare(answer)];
    if (deviations.length === 0) coverage.passed(operation, answer);
    assertNone(name, deviations);
  }

  if (operation.access === 'anybody') {
    return [toCase('answers without a token, as documented', (name) => pass(name, {}))];
  }
  const enough = (alternatives[0] ?? []).join(' ');
  const { 'x-optional-scopes': optional = [] } = operation.operation;
  const withOptional = optional.length === 0 ? [] : alternatives.map((scopes) => [...scopes, ...optional]);
  const lacking: Refusal = {
    status: 403,
    error: 'insufficient_scope',
    codes: ['insufficient_scope'],
    scopes: [[...new Set(alternatives.flat())], ...alternatives],
  };
  return [
    ...ATTACKS.filter(({ isChange = false }) => settings.generations || !isChange).map((attack) =>
      toCase(`refuses ${attack.name}`, async (name) => {
        const patienceMs = attack.isChange ? settings.propagationMs : 0;
        assertNone(name, await refuseSoon(attack.build(issuer, enough), attack.accepted, patienceMs));
      }),
    ),
    ...insufficientSets(alternatives, bench.declaredScopes).map((set) =>
      toCase(`refuses ${set.name}`, async (name) => assertNone(name, await refuse(tokenWith(set.scopes), [lacking]))),
    ),
    ...sufficientSets([...alternatives, ...withOptional]).map((set) =>
      toCase(`lets ${set.name} pass`, (name) => pass(name, tokenWith(set.scopes))),
    ),
  ];

  function tokenWith(scopes: readonly string[]): Addition {
    const scope = scopes.length === 0 ? undefined : scopes.join(' ');
    return { headers: { authorization: bearer(issuer.token({ scope })) } };
  }
}

function add({ method, target, headers, body }: PreparedRequest, addition: Addition): Outgoing {
  const { query } = addition;
  const separator = target.includes('?') ? '&' : '?';
  return {
    method,
    target: query === undefined ? target : target + separator + query,
    headers: { ...headers, ...addition.headers },
    body,
  };
}

function compareReached(reached: readonly string[]): readonly Deviation[] {
  if (reached.length === 0) return [];
  return [{ what: 'handlers reached', got: [...new Set(reached)].join(', '), expected: 'none' }];
}

/** What a token that is good enough cannot be answered; everything else is for the document to say. */
function comparePassage({ status, headers }: Answer): readonly Deviation[] {
  const isRefused = status === 401 || status === 403 || headers['www-authenticate'] !== undefined;
  if (isRefused) {
    return [{ what: 'status', got: `${status}, refused by the gate`, expected: 'the answer of the handler' }];
  }
  if (status === 429) return [{ what: 'status', got: 429, expected: 'an answer; raise the rate limit for tests' }];
  return status >= 500 ? [{ what: 'status', got: status, expected: 'below 500' }] : [];
}
