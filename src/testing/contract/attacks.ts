import { bearer } from './credentials';
import { misplacedTokens } from './carriers';
import { findLeaks } from './leaks';
import { findForeignObjects, findOverwritten } from './objects';
import { caseOf, send } from './operation';
import type { CaseContext } from './api';
import type { ContractCase } from './operation';
import type { CaseClass } from './options';
import {
  eachOf,
  findOpen,
  findOpenMethods,
  NOBODY,
  openWith,
  sufficient,
  watchEffect,
  weakCredentials,
  WITHOUT_SCOPES,
} from './probe';
import type { Found } from './probe';
import { assertNoMismatch } from './responses';
import { scopeForms } from './scope-forms';
import { findRemembered } from './state';
import { VARIANTS } from './variants';

/** An attack on one operation: its class, a sentence for its case, and what it finds, or why it has nothing to try. */
type AttackClass = readonly [what: CaseClass, sentence: string, find: (context: CaseContext) => Promise<Found>];

const ALL_OPEN = 'its plain request is open to every weak caller';
const NO_SCOPES = 'it requires no scope';

const CLASSES: readonly AttackClass[] = [
  ...Object.entries(VARIANTS).map(([what, { name, variants }]): AttackClass => [
    what as CaseClass,
    `stays closed ${name}`,
    async (context) => {
      const { operation, api } = context;
      const { target } = context.prepare();
      const { document, publicPath, isFull } = api;
      const subject = { document, operation, target, publicPath, isFull, methods: api.methodsOf(operation.path) };
      const callers = await weakCredentials(context);
      if (callers.length === 0) return ALL_OPEN;
      return (await eachOf(variants(subject), (variant) => findOpen(context, variant, callers))).flat();
    },
  ]),
  [
    'method',
    'stays closed to a method that the document does not have',
    async (context) => {
      const { operation, api } = context;
      const methods = api.methodsOf(operation.path);
      const first = methods.find((method) => api.contextOf(method, operation.path)?.operation.access === 'token');
      if (operation.method !== first) return [];
      const others = WRITES.filter((method) => !methods.includes(method));
      return findOpenMethods(context, others, await weakCredentials(context));
    },
  ],
  [
    'transport',
    'takes a token from the Authorization header only',
    async (context) => {
      const { document, isFull } = context.api;
      const callers = await weakCredentials(context);
      if (callers.length === 0) return ALL_OPEN;
      const { headers = {} } = sufficient(context);
      const token = String(headers['authorization']).replace('Bearer ', '');
      const { places, schemes } = misplacedTokens(document, token, isFull);
      const withToken = callers.map(([who, ...rest]) => [who === NOBODY ? '' : who, ...rest] as const);
      const alone = withToken.filter(([who]) => who === '');
      return [
        ...(await eachOf(places, (variant) => findOpen(context, variant, withToken))),
        ...(await eachOf(schemes, (variant) => findOpen(context, variant, alone))),
      ].flat();
    },
  ],
  [
    'form',
    'takes no scope in another form',
    async (context) => {
      const { declaredScopes, isFull, settings } = context.api;
      const [scopes = []] = context.operation.security;
      if (scopes.length === 0) return NO_SCOPES;
      if (!(await weakCredentials(context)).some(([who]) => who === WITHOUT_SCOPES)) return ALL_OPEN;
      const forms = scopeForms(scopes, declaredScopes);
      return eachOf(isFull ? forms : forms.slice(0, 4), ([form, token]) =>
        openWith(context, `${form} instead of a scope`, {
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

/** Lists the cases of attacks on one operation, one for each class. */
export function attackCases(context: CaseContext): readonly ContractCase[] {
  if (context.operation.access !== 'token') return [];
  return CLASSES.map(([what, sentence, find]) =>
    caseOf(context, what, sentence, async (name) => {
      const result = await find(context);
      if (typeof result === 'string') return void context.findings.withoutCase.set(what, result);
      const found = result.filter((one) => one !== undefined);
      const more = found.length > 1 ? ` (and ${found.length - 1} more)` : '';
      const [first = ''] = found;
      const { text, exchange } = typeof first === 'string' ? { text: first, exchange: undefined } : first;
      const mismatch = { what: 'found', got: `${text}${more}`, expected: 'nothing' };
      assertNoMismatch(name, found.length === 0 ? [] : [mismatch], exchange);
    }),
  );
}

/** A read before and after a refused write must be equal. */
async function findSideEffects(context: CaseContext): Promise<Found> {
  const watched = await watchEffect(context);
  if (typeof watched === 'string') return watched;
  return eachOf(await weakCredentials(context), async ([who, transport]) => {
    await send(context, transport);
    return (await watched.hasChanged()) ? `${who}, ${watched.name} differs afterwards` : undefined;
  });
}
