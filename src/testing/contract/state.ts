import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { CaseContext } from './api';
import { bearer } from './credentials';
import type { TokenTransport } from './credentials';
import { send, tokenWith } from './operation';
import { eachOf, openWith, sufficient, weakCredentials, WITHOUT_SCOPES } from './probe';
import type { Finding, Found } from './probe';

const CLIENT = 'contract-cases-known';
const RETRY_MS = 50;
/** Requests that overlap: one of each pair is good. */
const PAIRS = 4;

/** Refusals after a success, and at the same time: what a cache, a memo or a shared variable of the gate gets wrong. */
export async function findRemembered(context: CaseContext): Promise<Found> {
  const { operation, api, findings } = context;
  if (operation.method !== 'GET') return 'only reads are repeated';
  const id = `contract-cases-${Date.now()}`;
  const known = tokenWith(context, operation.security[0], { clientId: CLIENT, claims: { jti: id } });
  const { response: good } = await send(context, known);
  if (good.status >= 300) return 'no good token has got a response';
  findings.good ??= good;
  const callers = await weakCredentials(context);
  const needsScopes = callers.some(([who]) => who === WITHOUT_SCOPES);
  const another = (others: Parameters<typeof tokenWith>[2]) =>
    tokenWith(context, operation.security[0], { clientId: CLIENT, claims: { jti: id }, ...others });
  const forged = another({ foreignKey: true });
  const tried: readonly (readonly [what: string, transport: TokenTransport])[] = [
    ...callers.map(([who, transport]) => [`${who}, after a success`, transport] as const),
    ['a known token with another signature', bearer(withOtherSignature(tokenOf(known)))],
    ['a forged token with the id of a known one', forged],
    ['the same forged token again', forged],
    ['an expired token with the id of a known one', another({ expired: true })],
    ...(needsScopes
      ? ([
          ['another token of the same client, without scopes', another({ scope: undefined, claims: {} })],
          ['a token without scopes with the id of a known one', another({ scope: undefined })],
        ] as const)
      : []),
    ...kept(good.headers),
  ];
  return [
    ...(await eachOf(tried, ([what, transport]) => openWith(context, what, transport))),
    ...(await findMixedUp(context, callers)),
    ...(api.hasGenerations && api.isFull ? [await findSuperseded(context, known)] : []),
  ];
}

/** What a response leaves with its caller, sent back without a token: its ETag, its cookies. */
function kept({ etag, 'set-cookie': cookies = [] }: IncomingHttpHeaders) {
  const cookie = cookies.map((one) => one.split(';', 1)[0]).join('; ');
  return [
    ...(etag === undefined ? [] : [['If-None-Match without a token', { headers: { 'if-none-match': etag } }] as const]),
    ...(cookie === ''
      ? []
      : [['the cookies of an allowed response without a token', { headers: { cookie } }] as const]),
  ];
}

/** Good and weak requests at the same time. */
async function findMixedUp(
  context: CaseContext,
  callers: Awaited<ReturnType<typeof weakCredentials>>,
): Promise<readonly Finding[]> {
  return eachOf(callers, async ([who, transport]) => {
    const pairs = Array.from({ length: PAIRS }, async () => {
      const [, found] = await Promise.all([
        send(context, sufficient(context)),
        openWith(context, `${who}, at the same time as a good token`, transport),
        send(context, sufficient(context)),
      ]);
      return found;
    });
    return (await Promise.all(pairs)).find((one) => one !== undefined);
  });
}

async function findSuperseded(context: CaseContext, known: TokenTransport): Promise<Finding> {
  const { issuer, propagationMs } = context.api.settings;
  issuer.token({ clientId: CLIENT, superseded: true });
  const deadlineMs = performance.now() + propagationMs;
  for (;;) {
    const open = await openWith(context, 'a known token that was superseded', known);
    if (open === undefined || performance.now() >= deadlineMs) return open;
    await wait(RETRY_MS);
  }
}

function tokenOf({ headers }: TokenTransport): string {
  return String(headers?.['authorization']).replace('Bearer ', '');
}

function withOtherSignature(token: string): string {
  const [head, payload, signature = ''] = token.split('.');
  return [head, payload, (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1)].join('.');
}
