import { setTimeout as wait } from 'node:timers/promises';
import { isObject } from 'tillgate/internal';
import type { LocatedOperation } from '../openapi/document';
import type { TestToken } from '../issuer/test-token';
import { ATTACKS, bearer, claimsOf, insufficientSets, sufficientSets } from './credentials';
import type { Attack, TokenTransport } from './credentials';
import type { CaseClass, ContractSettings } from './options';
import { assertNoMismatch } from './responses';
import type {
  ApiRequest,
  ApiResponse,
  DocumentedResponses,
  ExpectedRefusal,
  Mismatch,
  RefusalRules,
} from './responses';
import type { Exchange, Target } from './target';

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

/** A refused request whose handlers may still be called. */
export interface Refused {
  /** Name of the case. */
  readonly name: string;
  readonly reached: () => readonly string[];
  /** How many entries of `reached` the case has checked itself. */
  readonly checked: number;
}

/** What the cases of one operation are made from, and what they have seen. */
export interface CaseContext {
  /** `GET /orders/{id}` */
  readonly name: string;
  readonly operation: LocatedOperation;
  readonly settings: ContractSettings;
  readonly call: Target['call'];
  /** Collects what was refused. */
  readonly refused: Refused[];
  readonly rules: RefusalRules;
  readonly declaredScopes: readonly string[];
  /** Makes the request, good except for its missing token. */
  readonly prepare: () => ApiRequest;
  readonly documented: DocumentedResponses;
  /** Documented entries to which a response belonged so far, and statuses that are not documented. */
  readonly seen: Set<string>;
  /** Statuses of valid responses to tokens that are good enough. */
  readonly accepted: Set<number>;
  /** The last response to a token that is good enough, in the 2xx. */
  good: ApiResponse | undefined;
  /** Ways in which responses differ from the document, by what they are. */
  readonly differences: Map<string, Mismatch>;
  /** Functions that were called before the guard of a refused request. */
  readonly beforeGuard: Set<string>;
  /** The operation whose cases try every attack on the gate that the two have in common; may be the same. */
  readonly representative: CaseContext;
  /** The refusals of attacks that were tried, by their names. */
  readonly refusals: Map<string, string>;
  /** Whether every row of the attacks is tried. */
  readonly isFull: boolean;
  /** Whether an attack would take a request of the rate limit that later cases need. */
  readonly isLimited: () => boolean;
  /** Whether attacks were left out for that. */
  wasLimited: boolean;
}

/** Pause before a request is sent again that the API may refuse soon, in ms. */
const RETRY_MS = 50;

const FORGED = 'a token signed with a foreign key';

/** Lists the cases about tokens and scopes of one operation. */
export function tokenCases(context: CaseContext): readonly ContractCase[] {
  const { operation, settings, representative } = context;
  const { security: alternatives } = operation;
  if (operation.access === 'anybody') {
    return [caseOf(context, 'scope', 'responds without a token as documented', (name) => accept(context, name, {}))];
  }
  const { 'x-optional-scopes': optional = [] } = operation.operation;
  const withOptional = optional.length === 0 ? [] : alternatives.map((scopes) => [...scopes, ...optional]);
  const insufficientScope: ExpectedRefusal = {
    status: 403,
    error: 'insufficient_scope',
    codes: ['insufficient_scope'],
    scopes: [[...new Set(alternatives.flat())], ...alternatives],
  };
  const attacks = ATTACKS.filter(
    ({ on, supersedes }) =>
      (settings.depth === 'full' || representative === context || on === 'every operation') &&
      !(supersedes && settings.generations === false),
  );
  return [
    ...attacks.map((attack) =>
      caseOf(context, 'token', `refuses ${attack.name}`, (name) => refuseAttack(context, name, attack)),
    ),
    ...insufficientSets(alternatives, context.declaredScopes).map(({ name: set, scopes }) =>
      caseOf(context, 'scope', `refuses ${set}`, (name) =>
        refuse(context, name, tokenWith(context, scopes), [insufficientScope]),
      ),
    ),
    ...sufficientSets([...alternatives, ...withOptional]).map(({ name: set, scopes }) =>
      caseOf(context, 'scope', `accepts ${set}`, (name) => accept(context, name, tokenWith(context, scopes))),
    ),
  ];
}

/** The case that says how responses to the other ones differ from the document. */
export function documentCase(context: CaseContext): ContractCase {
  return caseOf(context, 'document', 'responds as documented', (name) => {
    const differences = [...context.differences.values()];
    const { strict } = context.settings;
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
  const { representative, refusals } = context;
  const [own, other] = [refusals.get(FORGED), representative.refusals.get(FORGED)];
  if (attack.name !== FORGED || other === undefined || own === other || context.settings.depth === 'full') return;
  for (const another of ATTACKS) {
    const isTried = another.on === 'every operation' || (another.supersedes && context.settings.generations === false);
    if (!isTried) await tryAttack(context, `${context.name} refuses ${another.name}`, another);
  }
}

async function tryAttack(context: CaseContext, name: string, attack: Attack): Promise<void> {
  const { operation, settings } = context;
  const scope = (operation.security[0] ?? []).join(' ');
  const { token: change, supersedes, on, accepted } = attack;
  const token = settings.issuer.token({ scope, ...change?.(claimsOf(settings.issuer)) });
  // The API may learn late of the change that supersedes a token.
  const retryForMs = supersedes ? settings.propagationMs : 0;
  const response = await refuse(context, name, attack.send(token), accepted, {
    retryForMs,
    on,
  });
  context.refusals.set(attack.name, fingerprintOf(response));
}

/** What refusals of one gate have in common. */
function fingerprintOf({ status, headers, body }: ApiResponse): string {
  const members = isObject(body) ? Object.keys(body).sort() : [];
  const challenge = String(headers['www-authenticate']).replace(/scope="[^"]*"/, '');
  return JSON.stringify([status, headers['content-type'], challenge, members]);
}

/** Whether the gate is Tillgate's, or one that is to be compared with it. */
function isOwn({ rules, settings: { problems, generations } }: CaseContext): boolean {
  return rules.isStrict() === true && (problems !== false || generations === true);
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
  const { rules, operation, settings } = context;
  for (;;) {
    const exchange = await send(context, transport);
    const { response, trace } = exchange;
    const compared = rules.compare(response, accepted, operation.method !== 'HEAD');
    if (how.on === 'RFC 6750' && !rules.isStrict()) return response;
    if (how.on === 'Tillgate' && !isOwn(context)) return response;
    const reached = trace.reached();
    const mismatches = [...compared.filter(({ isNotice }) => !isNotice), ...compareReached(reached)];
    if (mismatches.length === 0 || performance.now() >= deadlineMs) {
      const notices = compared.filter(({ isNotice }) => isNotice);
      for (const one of [...notices, ...context.documented.compare(response)]) noteDifference(context, one);
      for (const passed of trace.passed) context.beforeGuard.add(passed);
      const before = settings.strict && trace.passed.length > 0 ? trace.passed.join(', ') : undefined;
      const early = before === undefined ? [] : [{ what: 'called before the guard', got: before, expected: 'nothing' }];
      if (mismatches.length === 0) context.refused.push({ name, reached: trace.reached, checked: reached.length });
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
  assertNoMismatch(name, compareAccepted(response), exchange);
  for (const one of context.documented.compare(response)) noteDifference(context, one);
  context.accepted.add(response.status);
  if (response.status >= 200 && response.status < 300) context.good = response;
}

function noteDifference({ differences }: CaseContext, mismatch: Mismatch): void {
  const key = `${mismatch.what} ${String(mismatch.got)}`;
  if (!differences.has(key)) differences.set(key, mismatch);
}

/** Sends the request of an operation, changed. */
export async function send(
  { call, documented, seen, prepare }: CaseContext,
  { headers, query }: TokenTransport,
  change: (request: ApiRequest) => ApiRequest = (request) => request,
): Promise<Exchange> {
  const prepared = prepare();
  const separator = prepared.target.includes('?') ? '&' : '?';
  const target = query === undefined ? prepared.target : prepared.target + separator + query;
  const result = await call(change({ ...prepared, target, headers: { ...prepared.headers, ...headers } }));
  const { status } = result.response;
  seen.add(documented.entryOf(status) ?? String(status));
  return result;
}

/** A good token with these scopes, unless `others` make it a bad one. */
export function tokenWith(
  { settings }: CaseContext,
  scopes: readonly string[] = [],
  others: TestToken = {},
): TokenTransport {
  return bearer(settings.issuer.token({ scope: scopes.length === 0 ? undefined : scopes.join(' '), ...others }));
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
