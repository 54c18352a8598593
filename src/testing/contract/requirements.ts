import { setTimeout as wait } from 'node:timers/promises';
import { explain } from 'tillgate';
import { isObject } from 'tillgate/internal';
import { startTestIssuer } from '../issuer/http-issuer';
import { ATTACKS, claimsOf, insufficientSets, sufficientSets } from './credentials';
import type { Attack, TokenTransport } from './credentials';
import { noteDifference } from './findings';
import { makeMissing } from './makers';
import { adviceOnNeeds } from './operation';
import { assertNoMismatch } from './responses';
import type { ApiResponse, ExpectedRefusal, Mismatch } from './responses';
import { caseOf, eachOf, send, sufficient, tokenWith } from './subject';
import type { ContractCase, Part, Subject } from './subject';
import type { Exchange } from './target';

/** Pause before a request is sent again that the API may refuse soon, in ms. */
const RETRY_MS = 50;

const FORGED = 'a token signed with a foreign key';
const PUBLIC = 'responds without a token as documented';

/** The requirements of one operation on tokens that any gate refuses. */
export function tokenParts(subject: Subject): readonly Part[] {
  const { operation, api } = subject;
  if (operation.access === 'anybody') return [];
  const isOnce = api.settings.depth !== 'full' && api.representativeOf(operation) !== operation;
  const attacks = attacksOn(subject).filter(({ on }) => !isOnce || on === 'every operation');
  return attacks.map((attack) => [`refuses ${attack.name}`, (name) => refuseAttack(subject, name, attack)]);
}

/** The requirements of one operation on the scopes of a good token: those that are refused. */
export function refusalParts(subject: Subject): readonly Part[] {
  const { security: alternatives, access } = subject.operation;
  if (access === 'anybody') return [];
  const insufficientScope: ExpectedRefusal = {
    status: 403,
    error: 'insufficient_scope',
    codes: ['insufficient_scope'],
    scopes: [[...new Set(alternatives.flat())], ...alternatives],
  };
  return insufficientSets(alternatives, subject.api.declaredScopes).map(({ name: set, scopes }) => [
    `refuses ${set}`,
    (name) => refuse(subject, name, tokenWith(subject, scopes), { accepted: [insufficientScope] }),
  ]);
}

/** Those whose requests must reach the handler. */
export function acceptanceParts(subject: Subject): readonly Part[] {
  const { security: alternatives, access, operation } = subject.operation;
  if (access === 'anybody') return [[PUBLIC, (name) => accept(subject, name, {})]];
  const { 'x-optional-scopes': optional = [] } = operation;
  const withOptional = optional.length === 0 ? [] : alternatives.map((scopes) => [...scopes, ...optional]);
  return sufficientSets([...alternatives, ...withOptional]).map(({ name: set, scopes }) => [
    `accepts ${set}`,
    (name) => accept(subject, name, tokenWith(subject, scopes)),
  ]);
}

/** The case of an operation on its scopes; without the refusals it says whether the other cases prove anything. */
export function scopeCase(subject: Subject, isWhole: boolean): ContractCase {
  const sentence = subject.operation.access === 'anybody' ? PUBLIC : 'accepts and refuses tokens by their scopes';
  return caseOf(subject, 'scope', sentence, [...(isWhole ? refusalParts(subject) : []), ...acceptanceParts(subject)]);
}

/** The case that says how responses to the other ones differ from the document. */
export function documentCase(subject: Subject): ContractCase {
  const { operation, api, findings } = subject;
  const sentence = 'responds as documented';
  const check = (name: string): void => {
    const all = [...findings.of(operation).differences.values()];
    const counted = all.filter(({ isNotice }) => api.settings.strict || !isNotice);
    assertNoMismatch(name, counted);
  };
  return caseOf(subject, 'document', sentence, [[sentence, check]]);
}

function attacksOn({ api }: Subject): readonly Attack[] {
  return ATTACKS.filter(({ supersedes }) => !supersedes || api.hasGenerations);
}

/** A gate that refuses a forged token as that of another operation does is taken for the same. */
async function refuseAttack(subject: Subject, name: string, attack: Attack): Promise<void> {
  await tryAttack(subject, name, attack);
  const { operation, api, findings } = subject;
  const [own, other] = [operation, api.representativeOf(operation)].map((one) => findings.of(one).refusals.get(FORGED));
  if (attack.name !== FORGED || other === undefined || own === other || api.settings.depth === 'full') return;
  for (const another of attacksOn(subject)) {
    if (another.on === 'every operation') continue;
    await tryAttack(subject, `${operation.name} refuses ${another.name}`, another);
  }
}

async function tryAttack(subject: Subject, name: string, attack: Attack): Promise<void> {
  const { operation, api, findings } = subject;
  const { issuer } = api.settings;
  const scope = (operation.security[0] ?? []).join(' ');
  const good = issuer.token({ scope, ...attack.token?.(claimsOf(issuer)) });
  const keys = attack.forge && (await startTestIssuer());
  const token = (keys && attack.forge?.(good, keys)) ?? good;
  try {
    const response = await refuse(subject, name, { ...attack.send(token), caller: attack.name }, attack);
    findings.of(operation).refusals.set(attack.name, fingerprintOf(response));
    // RFC 8725 section 3.10
    const read = { what: 'the URL that the token names', got: 'requested', expected: 'not requested' };
    assertNoMismatch(name, keys && keys.fetches > 0 ? [read] : []);
  } finally {
    await keys?.close();
  }
}

/** What refusals of one gate have in common. */
function fingerprintOf({ status, headers, body }: ApiResponse): string {
  const members = isObject(body) ? Object.keys(body).sort() : [];
  const challenge = String(headers['www-authenticate']).replace(/scope="[^"]*"/, '');
  return JSON.stringify([status, headers['content-type'], challenge, members]);
}

/** Sends a request that must be refused, again and again while the API may not have learned of a change. */
async function refuse(
  subject: Subject,
  name: string,
  transport: TokenTransport,
  { accepted, on, supersedes }: Pick<Attack, 'accepted' | 'on' | 'supersedes'>,
): Promise<ApiResponse> {
  const { operation, api, findings } = subject;
  const { rules, settings } = api;
  const found = findings.of(operation);
  const deadlineMs = performance.now() + (supersedes ? settings.propagationMs : 0);
  for (;;) {
    const exchange = await send(subject, transport);
    const { response, trace } = exchange;
    const compared = rules.compare(response, accepted, operation.method !== 'HEAD');
    if (on === 'RFC 6750' && !rules.isStrict()) {
      // RFC 6750 section 2.3 allows a token in the query, RFC 9700 section 4.3.2 advises against it.
      const isTaken = response.status < 300 && transport.headers === undefined;
      const expected = 'a refusal (RFC 9700 section 4.3.2)';
      const habit = { what: 'a token in the query', got: response.status, expected, isNotice: true, isHabit: true };
      if (isTaken) noteDifference(found, habit);
      return response;
    }
    // The gate is Tillgate's, or one that is to be compared with it.
    const isOwn = rules.isStrict() === true && (settings.problems !== false || api.hasGenerations);
    // Its issuer has been asked about too many keys: refused, whatever the token is.
    if ((on === 'Tillgate' && !isOwn) || isOfUnknownKey(response)) return response;
    const reached = trace.reached();
    // Where no token of the issuer is accepted, what refuses them is unknown: that nothing is open is all that counts.
    if (reached.length === 0 && response.status >= 300 && !(await takesToken(subject))) return response;
    // What validates before the guard, and refuses a good token too, proves nothing.
    const isUnread = reached.length === 0 && [400, 415, 422].includes(response.status) && compared.length > 0;
    if (isUnread && (await send(subject, sufficient(subject))).response.status === response.status) return response;
    const wrong = compared.filter(({ isNotice }) => !isNotice).map((one) => nameLimit(one, response));
    const names = [...new Set(reached)].join(', ');
    const mismatches = [
      ...wrong,
      ...(names === '' ? [] : [{ what: 'handlers reached', got: names, expected: 'none' }]),
    ];
    if (mismatches.length > 0 && performance.now() < deadlineMs) {
      await wait(RETRY_MS);
      continue;
    }
    const notices = compared.filter(({ isNotice }) => isNotice);
    for (const one of [...notices, ...operation.documented.compare(response)]) noteDifference(found, one);
    for (const passed of trace.passed) found.beforeGuard.add(passed);
    const early =
      settings.strict && trace.passed.length > 0
        ? [{ what: 'called before the guard', got: trace.passed.join(', '), expected: 'nothing' }]
        : [];
    if (mismatches.length === 0) findings.refused.push({ name, reached: trace.reached, checked: reached.length });
    assertNoMismatch(nameError(name, subject, exchange), [...mismatches, ...early], exchange);
    return response;
  }
}

/** Sends a request that must reach its handler. */
async function accept(subject: Subject, name: string, transport: TokenTransport): Promise<void> {
  const { operation } = subject;
  const first = await send(subject, transport);
  // Nothing has made the object, or another case has removed it.
  const fill = [404, 409, 410].includes(first.response.status) ? await makeMissing(subject) : undefined;
  const exchange = fill ? await send(subject, transport, fill) : first;
  const { response } = exchange;
  const found = subject.findings.of(operation);
  const { status } = response;
  const isChallenged = /bearer/i.test(response.headers['www-authenticate'] ?? '');
  if (operation.access === 'anybody' && isRefused(response) && operation.documented.statuses.includes(String(status))) {
    // A signed link, a password: refused for what the request says, as the document has it.
    if (!isChallenged) return void (found.notTested = `it got ${status} as documented; give values in "requests"`);
  }
  if (operation.hasKey && isRefused(response) && !(await takesToken(subject))) {
    const key = 'the key in its Authorization header is no token of the issuer';
    return void (found.notTested = `${key}: good tokens got ${status}; give the value in "requests", or test it by hand`);
  }
  const mismatches = compareAccepted(response, subject);
  const detail = mismatches.length > 0 ? await detailOf(subject, transport) : undefined;
  const saying = detail === undefined ? [] : [{ what: 'the gate', got: detail, expected: 'to accept it' }];
  assertNoMismatch(nameError(name, subject, exchange), [...mismatches, ...saying], exchange);
  for (const one of subject.operation.documented.compare(response)) noteDifference(found, one);
  found.accepted.add(response.status);
  if (response.status >= 200 && response.status < 300) found.good = response;
}

/** What the gate of the app says about the token that it refuses. */
export async function detailOf({ api, operation }: Subject, { headers }: TokenTransport): Promise<string | undefined> {
  const token = /^Bearer (.*)$/.exec(String(headers?.['authorization']))?.[1];
  if (!api.gate || token === undefined) return undefined;
  const [scopes = [], ...others] = operation.security;
  const need = scopes.length > 0 && others.length === 0 ? { scopes } : {};
  const { checks } = await explain(token, { gate: api.gate, ...need });
  return checks.find(({ outcome }) => outcome === 'failed')?.detail;
}

/** Whether the operation takes tokens of the issuer: always, unless the document says that its token is an API key. */
function takesToken(subject: Subject): Promise<boolean> {
  const { operation, findings } = subject;
  const isKey = operation.hasKey && operation.access === 'token';
  return (findings.of(operation).takesTokens ??= isKey ? ask() : Promise.resolve(true));

  async function ask(): Promise<boolean> {
    const responses = await eachOf(
      operation.security,
      async (scopes) => (await send(subject, tokenWith(subject, scopes))).response,
    );
    return responses.some((one) => !isRefused(one));
  }
}

function isRefused({ status, dropped }: ApiResponse): boolean {
  return [400, 401, 403, 429].includes(status) || status >= 500 || dropped !== undefined;
}

/** What no response to a good token may be; the rest is up to the document. */
function compareAccepted(response: ApiResponse, { operation }: Subject): readonly Mismatch[] {
  const { status, headers, dropped } = response;
  if (dropped !== undefined) return [{ what: 'status', got: `none (${dropped})`, expected: 'a response' }];
  if ([401, 403].includes(status) || headers['www-authenticate'] !== undefined || isOfUnknownKey(response)) {
    const got = `${describeRefusal(response)}, refused by the gate${adviceOnNeeds(operation)}`;
    return [{ what: 'status', got, expected: 'the response of the handler' }];
  }
  if (status === 429) return [{ what: 'status', got: 429, expected: 'any other; raise the rate limit for tests' }];
  return status >= 500 ? [{ what: 'status', got: status, expected: 'below 500' }] : [];
}

/** A 429 that no case expects is about the number of requests, not about the token. */
function nameLimit(mismatch: Mismatch, response: ApiResponse): Mismatch {
  const { what, got, expected } = mismatch;
  if (what !== 'status' || got !== 429 || isOfUnknownKey(response)) return mismatch;
  return { what, got, expected: `${String(expected)}; this is a rate limit: raise it for tests` };
}

/** A 500 is an error of the app, whatever its token lacks. */
function nameError(name: string, { operation }: Subject, { response, caller = 'anybody' }: Exchange): string {
  return response.status === 500 ? `${operation.name} fails with 500 for ${caller}` : name;
}

/** Whether a gate could not verify the token, because its issuer has been asked about too many unknown keys. */
export function isOfUnknownKey({ status, body }: ApiResponse): boolean {
  return status === 429 && isObject(body) && body['code'] === 'too_many_unknown_keys';
}

/** The status with the `code` of the problem body, if any. */
export function describeRefusal({ status, body, dropped }: ApiResponse): string {
  if (dropped !== undefined) return `nothing (${dropped})`;
  const code = isObject(body) ? body['code'] : undefined;
  return typeof code === 'string' ? `${status} ${code}` : String(status);
}
