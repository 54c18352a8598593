import { isObject } from 'tillgate/internal';
import { requireGood, sharedData, weakCredentials } from './probe';
import type { Finding, Found } from './probe';
import type { ApiResponse } from './responses';
import { propertiesOf } from './sampler';
import { eachOf, send, sufficient } from './subject';
import type { Subject } from './subject';
import type { Exchange } from './target';

/** What no refusal needs: a stack, also in JSON, a key, a query. */
const INTERNALS =
  /(?:\n|\\n)\s+at \S.*?:\d+:\d+|Traceback \(most recent call last\)|-----BEGIN [A-Z ]+-----|"kty"\s*:|\/node_modules\/|\bSELECT\b[^"]+\bFROM\b/;

/** Headers that say something about what is protected: how much there is, where, of when. */
const TELLING =
  /^(x-total(-count)?|x-count|content-range|etag|last-modified|link|location|content-location|content-disposition)$/;

/** Caches that a response must not be kept in for others. */
const SHARED_CACHE = [
  ['cache-control', /(?:^|[\s,])(?:public|s-maxage=[1-9]\d*)(?:$|[\s,])/],
  ['cdn-cache-control', /max-age=[1-9]|public/],
  ['surrogate-control', /max-age=[1-9]/],
] as const;

/** Refusals that show what only a good token may see, and responses that anybody may store or read. */
export async function findLeaks(subject: Subject): Promise<Found> {
  const { method } = subject.operation;
  const good = method === 'GET' ? await requireGood(subject) : subject.findings.of(subject.operation).good;
  const found = await eachOf(await weakCredentials(subject), async ([who, transport]): Promise<readonly Finding[]> => {
    const exchange = await send(subject, transport);
    const what = exchange.response.status < 300 ? undefined : shownBy(subject, exchange, good);
    return what === undefined ? [] : [{ text: `${who}, the refusal contains "${what}"`, exchange }];
  });
  if (method !== 'GET') return [...found.flat(), ...(good ? [writeOnlyOf(subject, good)] : [])];
  if (!good) return 'no good token has got a response';
  return [...found.flat(), ...storedForOthers(good), await readByAnyOrigin(subject), writeOnlyOf(subject, good)];
}

/** What a refusal shows: data of a good response, in its body or its headers, the token, or how the API is made. */
function shownBy(subject: Subject, { request, response }: Exchange, good?: ApiResponse): string | undefined {
  const { text, headers } = response;
  const shared = sharedData(subject, response);
  if (shared !== undefined) return shared;
  const [internal] = INTERNALS.exec(text) ?? [];
  if (internal !== undefined) return internal.trim();
  const signature = String(request.headers['authorization'] ?? '').split('.')[2];
  if (signature && (text.includes(signature) || JSON.stringify(headers).includes(signature))) return 'the token';
  const telling = Object.entries(headers).find(
    ([name, value]) => TELLING.test(name) && good !== undefined && good.headers[name] === value,
  );
  return telling && `${telling[0]}: ${String(telling[1])}`;
}

function storedForOthers({ headers }: ApiResponse): readonly Finding[] {
  return SHARED_CACHE.flatMap(([name, pattern]) => {
    const value = [headers[name] ?? []].flat().join(', ');
    return pattern.test(value) ? [`a response with ${name}: ${value} to one caller is stored for all`] : [];
  });
}

async function readByAnyOrigin(subject: Subject): Promise<Finding> {
  const origin = 'https://elsewhere.example';
  const { response } = await send(subject, { headers: { ...sufficient(subject).headers, origin } });
  const { 'access-control-allow-origin': allowed, 'access-control-allow-credentials': credentials } = response.headers;
  return allowed === origin && credentials === 'true' ? 'any origin may read it with credentials' : undefined;
}

function writeOnlyOf({ api: { document }, operation }: Subject, { status, body }: ApiResponse): Finding {
  const { responses = {} } = operation.operation;
  const properties = propertiesOf(document, responses[String(status)] ?? responses['2XX']);
  const shown = [body].flat().flatMap((one) => (isObject(one) ? Object.keys(one) : []));
  const leaked = shown.find((name) => properties[name]?.['writeOnly'] === true);
  return leaked === undefined ? undefined : `the response has "${leaked}", which is writeOnly`;
}
