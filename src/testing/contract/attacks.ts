import { setTimeout as wait } from 'node:timers/promises';
import { bearer } from './credentials';
import { findForeignObjects, findLeaks, findOverwritten } from './objects';
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
import type { Finding } from './probe';
import { assertNoMismatch } from './responses';
import { scopeForms } from './scope-forms';
import { misplacedTokens, VARIANTS } from './variants';

/** An attack on one operation: its class, a sentence for its case, and what it finds. */
type AttackClass = readonly [
  what: CaseClass,
  sentence: string,
  find: (context: CaseContext) => Promise<readonly Finding[]>,
];

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
      const callers = (await weakCredentials(context)).filter(([who]) => who === NOBODY);
      const { headers = {} } = sufficient(context);
      const token = String(headers['authorization']).replace('Bearer ', '');
      const variants = misplacedTokens(document, token, isFull);
      const withToken = callers.map(([, ...rest]) => ['', ...rest] as const);
      return (await eachOf(variants, (variant) => findOpen(context, variant, withToken))).flat();
    },
  ],
  [
    'form',
    'takes no scope in another form',
    async (context) => {
      const { declaredScopes, isFull, settings } = context.api;
      const [scopes = []] = context.operation.security;
      const isClosed = (await weakCredentials(context)).some(([who]) => who === WITHOUT_SCOPES);
      if (scopes.length === 0 || !isClosed) return [];
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
      const found = (await find(context)).filter((one) => one !== undefined);
      const more = found.length > 1 ? ` (and ${found.length - 1} more)` : '';
      const [first = ''] = found;
      const { text, exchange } = typeof first === 'string' ? { text: first, exchange: undefined } : first;
      const mismatch = { what: 'found', got: `${text}${more}`, expected: 'nothing' };
      assertNoMismatch(name, found.length === 0 ? [] : [mismatch], exchange);
    }),
  );
}

/** Refusals after a success: what a cache or a memo of the gate would get wrong. */
async function findRemembered(context: CaseContext): Promise<readonly Finding[]> {
  const { operation, api, findings } = context;
  const { settings } = api;
  if (operation.method !== 'GET') return [];
  const clientId = 'contract-cases-known';
  const known = sufficient(context, clientId);
  const { response: good } = await send(context, known);
  if (good.status >= 300) return [];
  findings.good ??= good;
  const callers = await weakCredentials(context);
  const token = String(known.headers?.['authorization']).replace('Bearer ', '');
  const [head = '', payload = '', signature = ''] = token.split('.');
  const changed = signature.startsWith('A') ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
  const etag = good.headers.etag;
  const found = [
    ...(await eachOf(callers, ([who, transport]) => openWith(context, `${who}, after a success`, transport))),
    await openWith(context, 'a known token with another signature', bearer(`${head}.${payload}.${changed}`)),
    ...(callers.some(([who]) => who === WITHOUT_SCOPES)
      ? [
          await openWith(
            context,
            'another token of the same client, without scopes',
            bearer(settings.issuer.token({ clientId })),
          ),
        ]
      : []),
    ...(etag === undefined
      ? []
      : [await openWith(context, 'If-None-Match without a token', { headers: { 'if-none-match': etag } })]),
  ];
  if (!api.hasGenerations || !api.isFull) return found;
  settings.issuer.token({ clientId, superseded: true });
  const deadlineMs = performance.now() + settings.propagationMs;
  for (;;) {
    const open = await openWith(context, 'a known token that was superseded', known);
    if (open === undefined || performance.now() >= deadlineMs) return [...found, open];
    await wait(50);
  }
}

/** A read before and after a refused write must be equal. */
async function findSideEffects(context: CaseContext): Promise<readonly Finding[]> {
  const hasChanged = await watchEffect(context);
  if (!hasChanged) return [];
  return eachOf(await weakCredentials(context), async ([who, transport]) => {
    await send(context, transport);
    return (await hasChanged()) ? `${who}, GET ${context.operation.path} differs afterwards` : undefined;
  });
}
