import { misplacedTokens } from './carriers';
import { bearer, tokenOf } from './credentials';
import { findLeaks } from './leaks';
import { findForeignObjects, findOverwritten } from './objects';
import type { CaseClass } from './options';
import { findOpen, findOpenMethods, NOBODY, openWith, watchEffect, weakCredentials, WITHOUT_SCOPES } from './probe';
import type { Found } from './probe';
import { assertNoMismatch } from './responses';
import type { ApiRequest } from './responses';
import { otherBody } from './samples';
import { scopeForms } from './scope-forms';
import { findRemembered } from './state';
import { caseOf, eachOf, send, sufficient } from './subject';
import type { ContractCase, Part, Subject } from './subject';
import { VARIANTS } from './variants';

/** An attack on one operation: its class, a sentence for its case, and what it finds, or why it has nothing to try. */
type AttackClass = readonly [what: CaseClass, sentence: string, find: (subject: Subject) => Promise<Found>];

const ALL_OPEN = 'its plain request is open to every weak caller';
const NO_SCOPES = 'it requires no scope';

const CLASSES: readonly AttackClass[] = [
  ...Object.entries(VARIANTS).map(([what, { name, variants }]): AttackClass => [
    what as CaseClass,
    `stays closed ${name}`,
    async (subject) => {
      const callers = await weakCredentials(subject);
      if (callers.length === 0) return ALL_OPEN;
      return (await eachOf(variants(subject), (variant) => findOpen(subject, variant, callers))).flat();
    },
  ]),
  [
    'method',
    'stays closed to a method that the document does not have',
    async (subject) => {
      const { operation, api } = subject;
      const methods = api.methodsOf(operation.path);
      const first = methods.find((method) => api.find(method, operation.path)?.access === 'token');
      if (operation.method !== first) return [];
      const others = WRITES.filter((method) => !methods.includes(method));
      return findOpenMethods(subject, others, await weakCredentials(subject));
    },
  ],
  [
    'transport',
    'takes a token from the Authorization header only',
    async (subject) => {
      const { document, isFull } = subject.api;
      const callers = await weakCredentials(subject);
      if (callers.length === 0) return ALL_OPEN;
      const { places, schemes } = misplacedTokens(document, tokenOf(sufficient(subject)), isFull);
      const withToken = callers.map(([who, ...rest]) => [who === NOBODY ? '' : who, ...rest] as const);
      const alone = withToken.filter(([who]) => who === '');
      return [
        ...(await eachOf(places, (variant) => findOpen(subject, variant, withToken))),
        ...(await eachOf(schemes, (variant) => findOpen(subject, variant, alone))),
      ].flat();
    },
  ],
  [
    'form',
    'takes no scope in another form',
    async (subject) => {
      const { declaredScopes, isFull, settings } = subject.api;
      const [scopes = []] = subject.operation.security;
      if (scopes.length === 0) return NO_SCOPES;
      if (!(await weakCredentials(subject)).some(([who]) => who === WITHOUT_SCOPES)) return ALL_OPEN;
      const forms = scopeForms(scopes, declaredScopes);
      return eachOf(isFull ? forms : forms.slice(0, 4), ([form, token]) =>
        openWith(subject, `${form} instead of a scope`, {
          ...bearer(settings.issuer.token(token)),
          caller: `a token with ${form} instead of a scope`,
        }),
      );
    },
  ],
  ['state', 'stays closed after it was open to another token', findRemembered],
  ['effect', 'changes nothing when it refuses', findSideEffects],
  ['leak', 'tells a caller who may not see it nothing', findLeaks],
  ['object', 'shows and changes only what belongs to the client', findForeignObjects],
  ['property', 'leaves readOnly members as they are', findOverwritten],
];

/** Methods that a path may have although its document does not. */
const WRITES = ['PUT', 'PATCH', 'DELETE', 'POST'];

/** How much of what a case has found is named; the rest is only counted. */
const LISTED = 10;

/** Lists the cases of attacks on one operation, one for each class. */
export function attackCases(subject: Subject): readonly ContractCase[] {
  if (subject.operation.access !== 'token') return [];
  const byClass = new Map<CaseClass, Part[]>();
  for (const [what, sentence, find] of CLASSES) {
    const test = async (name: string): Promise<void> => {
      const result = await find(subject);
      if (typeof result === 'string') return void subject.findings.of(subject.operation).withoutCase.set(what, result);
      const found = result.flatMap((one) =>
        typeof one === 'string' ? { text: one, exchange: undefined } : (one ?? []),
      );
      const more = found.length > LISTED ? [`${found.length - LISTED} more`] : [];
      const listed = [...found.slice(0, LISTED).map(({ text }) => text), ...more];
      const mismatches = listed.map((got) => ({ what: 'found', got, expected: 'nothing' }));
      assertNoMismatch(name, mismatches, found[0]?.exchange);
    };
    byClass.set(what, [...(byClass.get(what) ?? []), [sentence, test]]);
  }
  return [...byClass].map(([what, parts]) => caseOf(subject, what, parts[0]?.[0] ?? '', parts));
}

/** A read before and after a refused write must be equal. */
async function findSideEffects(subject: Subject): Promise<Found> {
  const watched = await watchEffect(subject);
  if (typeof watched === 'string') return watched;
  const { operation, api } = subject;
  // The accepted token has written the sample already: writing it again would change nothing.
  const change = (request: ApiRequest): ApiRequest => {
    const body = request.body === undefined ? undefined : otherBody(api.document, operation, request.body);
    return body === undefined ? request : { ...request, body };
  };
  return eachOf(await weakCredentials(subject), async ([who, transport]) => {
    await send(subject, transport, change);
    return (await watched.hasChanged()) ? `${who}, ${watched.name} differs afterwards` : undefined;
  });
}
