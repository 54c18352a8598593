import { fail } from 'node:assert';
import { setTimeout as wait } from 'node:timers/promises';
import { isObject } from '../../core/objects';
import type { LocatedOperation } from '../../openapi/document';
import { ATTACKS, bearer, insufficientSets, sufficientSets } from './credentials';
import type { TokenTransport } from './credentials';
import type { ContractSettings } from './options';
import { assertNoMismatch } from './responses';
import type {
  ApiRequest,
  ApiResponse,
  DocumentedResponses,
  ExpectedRefusal,
  Mismatch,
  refusalRules,
} from './responses';
import type { Target } from './target';

/** One requirement, with its test. */
export interface ContractCase {
  readonly name: string;
  /** Rejects with an AssertionError (node:assert) when the requirement is not met. */
  readonly run: () => Promise<void>;
}

/** A refused request whose handlers may still be called. */
export interface Refused {
  /** Name of the case. */
  readonly name: string;
  readonly reached: readonly string[];
  /** How many entries of `reached` the case has checked itself. */
  readonly checked: number;
}

/** What the cases of one operation are made from. */
export interface CaseContext {
  /** `GET /orders/{id}` */
  readonly name: string;
  readonly operation: LocatedOperation;
  readonly settings: ContractSettings;
  readonly call: Target['call'];
  /** Collects what was refused. */
  readonly refused: Refused[];
  readonly compareRefusal: ReturnType<typeof refusalRules>;
  readonly declaredScopes: readonly string[];
  /** Makes the request, good except for its missing token. */
  readonly prepare: () => ApiRequest;
  readonly documented: DocumentedResponses;
  /** Documented entries to which a response belonged so far, and statuses that are not documented. */
  readonly seen: Set<string>;
  /** Statuses of valid responses to tokens that are good enough. */
  readonly accepted: Set<number>;
}

const RETRY_MS = 50;

/**
 * Makes the case that comes first: whether the API trusts the issuer at all. Without that every other case fails, for a
 * reason that none of them can name. Calls one operation after the other until one accepts a good token; an operation
 * that needs none by mistake proves nothing.
 */
export function acceptanceCase(contexts: readonly CaseContext[]): readonly ContractCase[] {
  const needToken = contexts.filter(({ operation }) => operation.access === 'token');
  if (needToken.length === 0) return [];
  const name = 'The API accepts tokens of the test issuer';

  async function run(): Promise<void> {
    const refusals: string[] = [];
    for (const context of needToken) {
      const { response: withoutToken } = await send(context, {});
      if (withoutToken.status !== 401) continue;
      const { response } = await send(context, tokenWith(context, context.operation.security[0]));
      if (response.status !== 401 && response.status !== 503 && !isOfUnknownKey(response)) return;
      refusals.push(`${context.name} responded ${describeRefusal(response)}`);
    }
    const [first, ...others] = refusals;
    if (first === undefined) return;
    const more = others.length === 0 ? '' : `, and so did ${others.length} more`;
    const hint = 'Give authenticate() the options of the issuer, or configure its issuer, audience and keys';
    fail(`${name}\n  None of this issuer's tokens is accepted: ${first}${more}. ${hint}.`);
  }
  return [{ name, run }];
}

/** Lists the cases of one operation. */
export function operationCases(context: CaseContext): readonly ContractCase[] {
  const { operation, settings } = context;
  const { security: alternatives } = operation;

  function toCase(sentence: string, test: (name: string) => Promise<void>): ContractCase {
    const name = `${context.name} ${sentence}`;
    return { name, run: () => test(name) };
  }

  if (operation.access === 'anybody') {
    return [toCase('responds without a token as documented', (name) => accept(context, name, {}))];
  }
  const { 'x-optional-scopes': optional = [] } = operation.operation;
  const withOptional = optional.length === 0 ? [] : alternatives.map((scopes) => [...scopes, ...optional]);
  const insufficientScope: ExpectedRefusal = {
    status: 403,
    error: 'insufficient_scope',
    codes: ['insufficient_scope'],
    scopes: [[...new Set(alternatives.flat())], ...alternatives],
  };
  return [
    ...ATTACKS.filter(({ token }) => settings.generations || !token?.superseded).map((attack) =>
      toCase(`refuses ${attack.name}`, (name) => {
        const token = settings.issuer.token({ scope: (alternatives[0] ?? []).join(' '), ...attack.token });
        // The API may learn late of the change that supersedes a token.
        const retryForMs = attack.token?.superseded ? settings.propagationMs : 0;
        return refuse(context, name, attack.send(token), attack.accepted, retryForMs);
      }),
    ),
    ...insufficientSets(alternatives, context.declaredScopes).map(({ name: set, scopes }) =>
      toCase(`refuses ${set}`, (name) => refuse(context, name, tokenWith(context, scopes), [insufficientScope])),
    ),
    ...sufficientSets([...alternatives, ...withOptional]).map(({ name: set, scopes }) =>
      toCase(`accepts ${set}`, (name) => accept(context, name, tokenWith(context, scopes))),
    ),
  ];
}

/** Sends a request that must be refused, again and again while the API may not have learned of a change. */
async function refuse(
  context: CaseContext,
  name: string,
  transport: TokenTransport,
  accepted: readonly ExpectedRefusal[],
  retryForMs = 0,
): Promise<void> {
  const deadlineMs = performance.now() + retryForMs;
  for (;;) {
    const { response, reached } = await send(context, transport);
    const mismatches = [
      ...context.compareRefusal(response, accepted, context.operation.method !== 'HEAD'),
      ...compareReached(reached),
      ...context.documented.compare(response),
    ];
    if (mismatches.length === 0) context.refused.push({ name, reached, checked: reached.length });
    if (mismatches.length === 0 || performance.now() >= deadlineMs) return assertNoMismatch(name, mismatches);
    await wait(RETRY_MS);
  }
}

async function accept(context: CaseContext, name: string, transport: TokenTransport): Promise<void> {
  const { response } = await send(context, transport);
  const mismatches = [...compareAccepted(response), ...context.documented.compare(response)];
  if (mismatches.length === 0) context.accepted.add(response.status);
  assertNoMismatch(name, mismatches);
}

async function send(
  { call, documented, seen, prepare }: CaseContext,
  { headers, query }: TokenTransport,
): ReturnType<Target['call']> {
  const prepared = prepare();
  const separator = prepared.target.includes('?') ? '&' : '?';
  const target = query === undefined ? prepared.target : prepared.target + separator + query;
  const result = await call({ ...prepared, target, headers: { ...prepared.headers, ...headers } });
  const { status } = result.response;
  seen.add(documented.entryOf(status) ?? String(status));
  return result;
}

function tokenWith({ settings }: CaseContext, scopes: readonly string[] = []): TokenTransport {
  return bearer(settings.issuer.token({ scope: scopes.length === 0 ? undefined : scopes.join(' ') }));
}

function compareReached(reached: readonly string[]): readonly Mismatch[] {
  if (reached.length === 0) return [];
  return [{ what: 'handlers reached', got: [...new Set(reached)].join(', '), expected: 'none' }];
}

/** What no response to a good token may be; the rest is up to the document. */
function compareAccepted(response: ApiResponse): readonly Mismatch[] {
  const { status, headers } = response;
  const isRefused =
    status === 401 || status === 403 || headers['www-authenticate'] !== undefined || isOfUnknownKey(response);
  if (isRefused) {
    const got = `${describeRefusal(response)}, refused by the gate`;
    return [{ what: 'status', got, expected: 'the response of the handler' }];
  }
  if (status === 429) return [{ what: 'status', got: 429, expected: 'any other; raise the rate limit for tests' }];
  return status >= 500 ? [{ what: 'status', got: status, expected: 'below 500' }] : [];
}

/** Whether a gate could not verify the token, because its issuer has been asked about too many unknown keys. */
function isOfUnknownKey({ status, body }: ApiResponse): boolean {
  return status === 429 && codeOf(body) === 'too_many_unknown_keys';
}

function codeOf(body: unknown): unknown {
  return isObject(body) ? body['code'] : undefined;
}

/** The status with the `code` of the problem body, if any. */
function describeRefusal({ status, body }: ApiResponse): string {
  const code = codeOf(body);
  return typeof code === 'string' ? `${status} ${code}` : String(status);
}
