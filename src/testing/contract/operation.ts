import { setTimeout as wait } from 'node:timers/promises';
import { isObject } from 'tillgate/internal';
import type { TestToken } from '../issuer/test-token';
import type { CaseContext } from './api';
import { ATTACKS, bearer, claimsOf, insufficientSets, sufficientSets } from './credentials';
import type { Attack, TokenTransport } from './credentials';
import { adviceOnNeeds, noteDifference } from './findings';
import type { CaseClass } from './options';
import { assertNoMismatch } from './responses';
import type { ApiRequest, ApiResponse, ExpectedRefusal, Mismatch } from './responses';
import type { Exchange } from './target';

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

/** Pause before a request is sent again that the API may refuse soon, in ms. */
const RETRY_MS = 50;

const FORGED = 'a token signed with a foreign key';

/** Lists the cases of one operation whose tokens or scopes are not good enough. */
export function refusalCases(context: CaseContext): readonly ContractCase[] {
  const { operation, api } = context;
  const { security: alternatives } = operation;
  if (operation.access === 'anybody') return [];
  const insufficientScope: ExpectedRefusal = {
    status: 403,
    error: 'insufficient_scope',
    codes: ['insufficient_scope'],
    scopes: [[...new Set(alternatives.flat())], ...alternatives],
  };
  const attacks = ATTACKS.filter(
    ({ on, supersedes }) =>
      (api.settings.depth === 'full' || api.representativeOf(context) === context || on === 'every operation') &&
      !(supersedes && !api.hasGenerations),
  );
  return [
    ...attacks.map((attack) =>
      caseOf(context, 'token', `refuses ${attack.name}`, (name) => refuseAttack(context, name, attack)),
    ),
    ...insufficientSets(alternatives, api.declaredScopes).map(({ name: set, scopes }) =>
      caseOf(context, 'scope', `refuses ${set}`, (name) =>
        refuse(context, name, tokenWith(context, scopes), [insufficientScope]),
      ),
    ),
  ];
}

/** Lists the cases of one operation whose requests must reach its handler. */
export function acceptanceCases(context: CaseContext): readonly ContractCase[] {
  const { security: alternatives, access, operation } = context.operation;
  if (access === 'anybody') {
    return [caseOf(context, 'scope', 'responds without a token as documented', (name) => accept(context, name, {}))];
  }
  const { 'x-optional-scopes': optional = [] } = operation;
  const withOptional = optional.length === 0 ? [] : alternatives.map((scopes) => [...scopes, ...optional]);
  return sufficientSets([...alternatives, ...withOptional]).map(({ name: set, scopes }) =>
    caseOf(context, 'scope', `accepts ${set}`, (name) => accept(context, name, tokenWith(context, scopes))),
  );
}

/** The case that says how responses to the other ones differ from the document. */
export function documentCase(context: CaseContext): ContractCase {
  return caseOf(context, 'document', 'responds as documented', (name) => {
    const differences = [...context.findings.differences.values()];
    const { strict } = context.api.settings;
    assertNoMismatch(
      name,
      differences.filter(({ isNotice }) => strict || !isNotice),
    );
  });
}

/** Names a case after its operation. */
export function caseOf(
  context: CaseContext,
  what: CaseClass,
  sentence: string,
  test: (name: string) => unknown,
): ContractCase {
  const name = `${context.name} ${sentence}`;
  return { name, class: what, operation: context.name, run: async () => void (await test(name)) };
}

/** A gate that refuses a forged token as that of another operation does is taken for the same. */
async function refuseAttack(context: CaseContext, name: string, attack: Attack): Promise<void> {
  await tryAttack(context, name, attack);
  const { api, findings } = context;
  const [own, other] = [findings, api.representativeOf(context).findings].map(({ refusals }) => refusals.get(FORGED));
  if (attack.name !== FORGED || other === undefined || own === other || api.settings.depth === 'full') return;
  for (const another of ATTACKS) {
    const isTried = another.on === 'every operation' || (another.supersedes && !api.hasGenerations);
    if (!isTried) await tryAttack(context, `${context.name} refuses ${another.name}`, another);
  }
}

async function tryAttack(context: CaseContext, name: string, attack: Attack): Promise<void> {
  const { operation, api } = context;
  const { settings } = api;
  const scope = (operation.security[0] ?? []).join(' ');
  const { token: change, supersedes, on, accepted } = attack;
  const token = settings.issuer.token({ scope, ...change?.(claimsOf(settings.issuer)) });
  // The API may learn late of the change that supersedes a token.
  const retryForMs = supersedes ? settings.propagationMs : 0;
  const transport = { ...attack.send(token), caller: attack.name };
  const response = await refuse(context, name, transport, accepted, { retryForMs, on });
  context.findings.refusals.set(attack.name, fingerprintOf(response));
}

/** What refusals of one gate have in common. */
function fingerprintOf({ status, headers, body }: ApiResponse): string {
  const members = isObject(body) ? Object.keys(body).sort() : [];
  const challenge = String(headers['www-authenticate']).replace(/scope="[^"]*"/, '');
  return JSON.stringify([status, headers['content-type'], challenge, members]);
}

/** Whether the gate is Tillgate's, or one that is to be compared with it. */
function isOwn({ api: { rules, settings, hasGenerations } }: CaseContext): boolean {
  return rules.isStrict() === true && (settings.problems !== false || hasGenerations);
}

/**
 * Sends a request that must be refused, again and again while the API may not have learned of a change.
 *
 * @param how - `on`: the gates that must refuse it
 */
export async function refuse(
  context: CaseContext,
  name: string,
  transport: TokenTransport,
  accepted: readonly ExpectedRefusal[],
  how: { readonly retryForMs?: number; readonly on?: Attack['on'] } = {},
): Promise<ApiResponse> {
  const deadlineMs = performance.now() + (how.retryForMs ?? 0);
  const { operation, api, findings } = context;
  const { rules, settings } = api;
  for (;;) {
    const exchange = await send(context, transport);
    const { response, trace } = exchange;
    const compared = rules.compare(response, accepted, operation.method !== 'HEAD');
    if (how.on === 'RFC 6750' && !rules.isStrict()) {
      // RFC 6750 section 2.3 allows a token in the query, RFC 9700 section 4.3.2 advises against it.
      const isTaken = response.status < 300 && transport.headers === undefined;
      const habit = {
        what: 'a token in the query',
        got: response.status,
        expected: 'a refusal (RFC 9700 section 4.3.2)',
      };
      if (isTaken) noteDifference(findings, { ...habit, isNotice: true, isHabit: true });
      return response;
    }
    if (how.on === 'Tillgate' && !isOwn(context)) return response;
    const reached = trace.reached();
    const mismatches = [...compared.filter(({ isNotice }) => !isNotice), ...compareReached(reached)];
    if (mismatches.length === 0 || performance.now() >= deadlineMs) {
      const notices = compared.filter(({ isNotice }) => isNotice);
      for (const one of [...notices, ...context.documented.compare(response)]) noteDifference(findings, one);
      for (const passed of trace.passed) findings.beforeGuard.add(passed);
      const before = settings.strict && trace.passed.length > 0 ? trace.passed.join(', ') : undefined;
      const early = before === undefined ? [] : [{ what: 'called before the guard', got: before, expected: 'nothing' }];
      if (mismatches.length === 0) api.refused.push({ name, reached: trace.reached, checked: reached.length });
      assertNoMismatch(name, [...mismatches, ...early], exchange);
      return response;
    }
    await wait(RETRY_MS);
  }
}

/** Sends a request that must reach its handler. */
export async function accept(context: CaseContext, name: string, transport: TokenTransport): Promise<void> {
  const exchange = await send(context, transport);
  const { response } = exchange;
  assertNoMismatch(name, compareAccepted(response, context), exchange);
  const { findings, documented } = context;
  for (const one of documented.compare(response)) noteDifference(findings, one);
  findings.accepted.add(response.status);
  if (response.status >= 200 && response.status < 300) findings.good = response;
}

/** Sends the request of an operation, changed. */
export async function send(
  { api, findings, prepare }: CaseContext,
  { headers, query, caller }: TokenTransport,
  change: (request: ApiRequest) => ApiRequest = (request) => request,
): Promise<Exchange> {
  const prepared = prepare();
  const separator = prepared.target.includes('?') ? '&' : '?';
  const target = query === undefined ? prepared.target : prepared.target + separator + query;
  const result = await api.call(change({ ...prepared, target, headers: { ...prepared.headers, ...headers } }));
  findings.isCalled = true;
  return { ...result, caller };
}

/** A good token with these scopes, unless `others` make it a bad one. */
export function tokenWith(
  { api: { settings } }: CaseContext,
  scopes: readonly string[] = [],
  others: TestToken = {},
): TokenTransport {
  const caller = scopes.length === 0 ? 'a token without scopes' : `a token with ${scopes.join(' and ')}`;
  const scope = scopes.length === 0 ? undefined : scopes.join(' ');
  return { ...bearer(settings.issuer.token({ scope, ...others })), caller };
}

function compareReached(reached: readonly string[]): readonly Mismatch[] {
  if (reached.length === 0) return [];
  return [{ what: 'handlers reached', got: [...new Set(reached)].join(', '), expected: 'none' }];
}

/** What no response to a good token may be; the rest is up to the document. */
function compareAccepted(response: ApiResponse, { operation }: CaseContext): readonly Mismatch[] {
  const { status, headers } = response;
  const isRefused =
    status === 401 || status === 403 || headers['www-authenticate'] !== undefined || isOfUnknownKey(response);
  if (isRefused) {
    const got = `${describeRefusal(response)}, refused by the gate${adviceOnNeeds(operation)}`;
    return [{ what: 'status', got, expected: 'the response of the handler' }];
  }
  if (status === 429) return [{ what: 'status', got: 429, expected: 'any other; raise the rate limit for tests' }];
  return status >= 500 ? [{ what: 'status', got: status, expected: 'below 500' }] : [];
}

/** Whether a gate could not verify the token, because its issuer has been asked about too many unknown keys. */
export function isOfUnknownKey({ status, body }: ApiResponse): boolean {
  return status === 429 && codeOf(body) === 'too_many_unknown_keys';
}

function codeOf(body: unknown): unknown {
  return isObject(body) ? body['code'] : undefined;
}

/** The status with the `code` of the problem body, if any. */
export function describeRefusal({ status, body }: ApiResponse): string {
  const code = codeOf(body);
  return typeof code === 'string' ? `${status} ${code}` : String(status);
}
