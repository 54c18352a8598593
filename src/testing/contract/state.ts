import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { TestToken } from '../issuer/test-token';
import { bearer, tokenOf } from './credentials';
import type { TokenTransport } from './credentials';
import type { Caller } from './findings';
import { openWith, weakCredentials, WITHOUT_SCOPES } from './probe';
import type { Finding, Found } from './probe';
import { eachOf, send, sufficient } from './subject';
import type { Subject } from './subject';

const CLIENT = 'contract-cases-known';
const RETRY_MS = 50;
/** Requests that overlap: one of each pair is good. */
const PAIRS = 4;

/** Refusals after a success, and at the same time: what a cache, a memo or a shared variable of the gate gets wrong. */
export async function findRemembered(subject: Subject): Promise<Found> {
  const { operation, api, findings } = subject;
  if (operation.method !== 'GET') return 'only reads are repeated';
  const id = `contract-cases-${Date.now()}`;
  const known = sufficient(subject, { clientId: CLIENT, claims: { jti: id } });
  const { response: good } = await send(subject, known);
  if (good.status >= 300) return 'no good token has got a response';
  findings.of(operation).good ??= good;
  const callers = await weakCredentials(subject);
  const needsScopes = callers.some(([who]) => who === WITHOUT_SCOPES);
  const another = (others: TestToken) => sufficient(subject, { clientId: CLIENT, claims: { jti: id }, ...others });
  const forged = another({ foreignKey: true });
  const scopeless = [
    ['another token of the same client, without scopes', another({ scope: undefined, claims: {} })],
    ['a token without scopes with the id of a known one', another({ scope: undefined })],
  ] as const;
  const [head, payload, signature = ''] = tokenOf(known).split('.');
  const otherSignature = (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1);
  const tried: readonly (readonly [what: string, transport: TokenTransport])[] = [
    ...callers.map(([who, transport]) => [`${who}, after a success`, transport] as const),
    ['a known token with another signature', bearer([head, payload, otherSignature].join('.'))],
    ['a forged token with the id of a known one', forged],
    ['the same forged token again', forged],
    ['an expired token with the id of a known one', another({ expired: true })],
    ...(needsScopes ? scopeless : []),
    ...kept(good.headers),
  ];
  return [
    ...(await eachOf(tried, ([what, transport]) => openWith(subject, what, transport))),
    ...(await findMixedUp(subject, callers)),
    ...(api.hasGenerations && api.isFull ? [await findSuperseded(subject, known)] : []),
  ];
}

/** What a response leaves with its caller, sent back without a token: its ETag, its cookies. */
function kept({ etag, 'set-cookie': cookies = [] }: IncomingHttpHeaders) {
  const cookie = cookies.map((one) => one.split(';', 1)[0]).join('; ');
  const sent: readonly (readonly [what: string, name: string, value: string])[] = [
    ['If-None-Match without a token', 'if-none-match', etag ?? ''],
    ['the cookies of an allowed response without a token', 'cookie', cookie],
  ];
  return sent.flatMap(([what, name, value]) => (value === '' ? [] : [[what, { headers: { [name]: value } }] as const]));
}

/** Good and weak requests at the same time. */
async function findMixedUp(subject: Subject, callers: readonly Caller[]): Promise<readonly Finding[]> {
  return eachOf(callers, async ([who, transport]) => {
    const pairs = Array.from({ length: PAIRS }, async () => {
      const [, found] = await Promise.all([
        send(subject, sufficient(subject)),
        openWith(subject, `${who}, at the same time as a good token`, transport),
        send(subject, sufficient(subject)),
      ]);
      return found;
    });
    return (await Promise.all(pairs)).find((one) => one !== undefined);
  });
}

async function findSuperseded(subject: Subject, known: TokenTransport): Promise<Finding> {
  const { issuer, propagationMs } = subject.api.settings;
  issuer.token({ clientId: CLIENT, superseded: true });
  const deadlineMs = performance.now() + propagationMs;
  for (;;) {
    const open = await openWith(subject, 'a known token that was superseded', known);
    if (open === undefined || performance.now() >= deadlineMs) return open;
    await wait(RETRY_MS);
  }
}
