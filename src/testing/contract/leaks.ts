import { isObject } from 'tillgate/internal';
import { NOBODY, requireGood, sharedData, weakCredentials } from './probe';
import type { Finding, Found } from './probe';
import { unknownLike, withIds } from './requests';
import { internalsIn } from './responses';
import type { ApiResponse } from './responses';
import { propertiesOf } from './sampler';
import { schemaValidators } from './schemas';
import { eachOf, requestOf, send, sufficient } from './subject';
import type { Subject } from './subject';
import type { Exchange } from './target';

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
  const { good: known, leaks } = subject.findings.of(subject.operation);
  const good = method === 'GET' ? await requireGood(subject) : known;
  const weak = await weakCredentials(subject);
  const found = await eachOf(weak, async ([who, transport, plain]): Promise<readonly Finding[]> => {
    const exchange = await send(subject, transport);
    const what = exchange.response.status < 300 ? undefined : shownBy(subject, exchange, good);
    const told = who === NOBODY ? [await findKnownIds(subject, plain?.status)] : [];
    return what === undefined ? told : [{ text: `${who}, the refusal contains "${what}"`, exchange }, ...told];
  });
  const plain = found.flat().filter((one) => one !== undefined);
  const all = plain.length > 0 ? plain : leaks.slice(0, 1);
  if (method !== 'GET') return [...all, ...(good ? [writeOnlyOf(subject, good)] : [])];
  if (!good) return all.length > 0 ? all : 'no good token has got a response';
  return [...all, ...storedForOthers(good), await readByAnyOrigin(subject), writeOnlyOf(subject, good)];
}

/** Statuses that say nothing about whether an object exists. */
const ABOUT_FORM: readonly number[] = [400, 405, 414, 422, 429, 503];

/** An id that nothing has gets what a known one gets, without a token. */
async function findKnownIds(subject: Subject, plain: number | undefined): Promise<Finding> {
  const { operation, api } = subject;
  const parts = operation.path.split('/');
  const at = parts.findLastIndex((part) => /^\{[^}]*\}$/.test(part));
  const parameter = operation.parameters.find((one) => one.in === 'path' && parts[at] === `{${one.name}}`);
  const id = unknownLike(decodeURIComponent(requestOf(subject).target.split(/[/?]/)[at] ?? ''));
  const { isValid } = schemaValidators(api.document);
  if (!parameter || ![id, Number(id)].some((one) => isValid(parameter.schema, one))) return undefined;
  const exchange = await send(subject, {}, (request) => withIds(request, operation.path, new Map([[at, id]])));
  const { status } = exchange.response;
  if (plain === undefined || status === plain || [status, plain].some((one) => ABOUT_FORM.includes(one)))
    return undefined;
  return { text: `${NOBODY}, an unknown ${parameter.name} gets ${status}, a known one ${plain}`, exchange };
}

/** What a refusal shows: data of a good response, in its body or its headers, the token, or how the API is made. */
function shownBy(subject: Subject, { request, response }: Exchange, good?: ApiResponse): string | undefined {
  const told = sharedData(subject, response) ?? internalsIn(request, response);
  if (told !== undefined) return told;
  const telling = Object.entries(response.headers).find(
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
