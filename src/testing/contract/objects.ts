import { isDeepStrictEqual } from 'node:util';
import { attempt, isObject } from 'tillgate/internal';
import type { TokenTransport } from './credentials';
import { noteDifference } from './findings';
import { fillOthers, make, makePath, makerOf, placesOf } from './makers';
import type { Place } from './makers';
import type { Operation } from './operation';
import { isAlike, leavesOf, sharedData } from './probe';
import type { Finding, Found } from './probe';
import { shapeOfPath, unknownLike, withIds, withMember } from './requests';
import type { Id, Ids } from './requests';
import type { ApiRequest, ApiResponse } from './responses';
import { propertiesOf } from './sampler';
import { eachOf, send, sufficient } from './subject';
import type { Subject } from './subject';
import type { Exchange } from './target';

/** Why there is no case where the document says nothing about owners. */
export const NO_OWNER = 'nothing in its request has x-owner: client';

/**
 * What one client has made must be closed to another with the same scopes, where the document says so: `x-owner: client` at
 * a parameter of the path or the query, at a property of the body or of objects in it. A POST makes the object.
 */
export async function findForeignObjects(subject: Subject): Promise<Found> {
  const places = placesOf(subject);
  const found = [...(await eachOf(places, (place) => findForeignObject(subject, place))), await findInList(subject)];
  const [why = NO_OWNER, ...others] = found.filter((one) => typeof one === 'string' && one !== NO_OWNER) as string[];
  const findings = found.filter((one) => typeof one !== 'string');
  if (findings.length === 0) return why;
  if (why !== NO_OWNER) subject.findings.of(subject.operation).withoutCase.set('object', [why, ...others].join('; '));
  return findings.flat();
}

async function findForeignObject(subject: Subject, place: Place): Promise<Found> {
  const { operation, api } = subject;
  const [owner, other] = api.settings.owners;
  const maker = makerOf(subject, place);
  if (!maker) return `no POST makes an object for ${place.name}`;
  const isInPath = place.at !== undefined;
  const foreign = await makePath(subject, isInPath ? operation : maker, owner);
  const made = (by: string): Promise<Id | undefined> =>
    make(subject, maker, { name: place.name, clientId: by, ...(by === owner && { ids: foreign }) });
  const id = place.at === undefined ? await made(owner) : foreign.get(place.at);
  if (id === undefined) return `${maker.name} has made no object with an id`;

  const own = await makePath(subject, operation, other);
  if (place.at !== undefined && own.get(place.at) === id)
    return `${maker.name} gives two clients the same ${place.name}`;
  const fill = await fillOthers(subject, other, place);
  const at = place.at ?? maker.path.split('/').length;
  const collection = (isInPath ? operation : maker).path.split('/').slice(0, at).join('/');
  const read = readerOf(subject, collection, new Map([...foreign, [at, id]]));
  const before = await read();
  const unknown = unknownLike(id);
  const plain = ({ response: { status, text } }: Exchange): string =>
    `${status} ${text.replaceAll(String(id), '*').replaceAll(String(unknown), '*')}`;
  // The whole path of the owner, or one id of it between those of the other client.
  const isAlone = foreign.size < 2 && own.size < 2;
  const wider = operation.method === 'GET' ? widerFor(owner).map((query) => [false, foreign, query] as const) : [];
  const fills: readonly (readonly [withOthers: boolean, ids: Ids, query?: string])[] = isInPath
    ? [[false, foreign], ...(isAlone ? [] : [[false, own] as const]), ...wider]
    : [[false, own], ...(place.isList ? [[true, own] as const] : [])];
  const found = await eachOf(fills, async ([withOthers, ids, query = '']): Promise<Finding> => {
    const ask = async (one: Id): Promise<Exchange> => {
      const more = withOthers ? ((await made(other)) ?? []) : [];
      const value = place.isList ? [more, one].flat() : one;
      const change = (made: ApiRequest): ApiRequest => place.put(fill(withIds(made, operation.path, ids)), value);
      return send(subject, asking(subject, other, query), change);
    };
    const exchange = await ask(id);
    const { status, text } = exchange.response;
    const what = `${operation.method} of what another client has made, in ${place.name}${query && `, with ?${query}`}: ${status}`;
    if (status >= 300) {
      const shown =
        sharedData(subject, exchange.response) ?? (query === '' && text.includes(owner) ? owner : undefined);
      if (shown !== undefined) return { text: `${what} with "${shown}"`, exchange };
      return query === '' ? noteRefusal(subject, place.name, exchange, await ask(unknown)) : undefined;
    }
    // What filters by ids is right when it responds as to one that does not exist, apart from numbers that change anyway.
    const [one, again] = isInPath ? [] : [await ask(unknown), await ask(unknown)];
    const isSame =
      one && again && (plain(one) === plain(again) ? plain(one) === plain(exchange) : isAlike(one, exchange));
    if (isSame) return undefined;
    return { text: what, exchange };
  });
  if (found.some((one) => one !== undefined) || before === undefined || (await read()) === before) return found;
  return [`${operation.method} by another client, in ${place.name}: the object is gone or changed afterwards`];
}

/** A foreign id and an unknown one get the same refusal: else it says that there is an object. */
function noteRefusal({ operation, findings }: Subject, name: string, foreign: Exchange, unknown: Exchange): undefined {
  if (unknown.response.status < 300 || isAlike(foreign, unknown)) return;
  const [got, other] = [foreign, unknown].map(({ response: { status, text } }) => `${status} ${text.slice(0, SHOWN)}`);
  const expected = `the same as for an unknown one, ${other}`;
  noteDifference(findings.of(operation), { what: `refusal of a foreign ${name}`, got, expected, isNotice: true });
}

/** Characters of a refusal in the report. */
const SHOWN = 80;

/** Reads an object as its owner: by its id, else whether it is in the list. */
function readerOf(subject: Subject, collection: string, ids: Ids): () => Promise<string | undefined> {
  const { api } = subject;
  const getOf = (shape: string): Operation | undefined =>
    api.tested.find((one) => one.method === 'GET' && shapeOfPath(one.path) === shape);
  const single = getOf(`${shapeOfPath(collection)}/{}`);
  const reader = single ?? getOf(shapeOfPath(collection));
  return async () => {
    if (!reader) return undefined;
    const own = { ...subject, operation: reader };
    const change = (request: ApiRequest): ApiRequest => withIds(request, reader.path, ids);
    const { response } = await send(own, sufficient(own, { clientId: api.settings.owners[0] }), change);
    if (response.status >= 300) return undefined;
    return single ? response.text : String(shows(response, ids.get(collection.split('/').length)));
  };
}

/** Queries that APIs have for more than a client may see, names for the client whose it is among them. */
function widerFor(owner: string): readonly string[] {
  const usual = 'all=true include_deleted=true limit=1000 limit=-1 fields=* expand=*'.split(' ');
  const names = 'client_id clientId client owner user_id account_id'.split(' ');
  return [...usual, names.map((name) => `${name}=${encodeURIComponent(owner)}`).join('&')];
}

/** A good token of a client; headers, where there is a query, that name the owner. */
function asking(subject: Subject, clientId: string, query: string): TokenTransport {
  const transport = sufficient(subject, { clientId });
  if (query === '') return transport;
  const [owner] = subject.api.settings.owners;
  return { ...transport, query, headers: { ...transport.headers, 'x-client-id': owner, 'x-user-id': owner } };
}

/** Operations that read although they are a POST. */
const SEARCH = /search|query|find|filter|export|report|list/i;
/** Shorter ids are in many texts. */
const TELLING_LENGTH = 4;
const COUNT = /total|count|size|length|number/i;

/**
 * What one client has made is not in the lists, searches and exports of another: plain, under usual names, right after the
 * first has read it, with the cursor of the first, and not in their totals.
 */
async function findInList(subject: Subject): Promise<Found> {
  const { operation, api } = subject;
  const [owner, other] = api.settings.owners;
  const isRead = operation.method === 'GET' || (operation.method === 'POST' && SEARCH.test(operation.path));
  const maker = ownedMakers(subject).find((one) => one !== operation && isListOf(operation, one));
  if (!isRead || operation.path.endsWith('}') || !maker) return NO_OWNER;
  const ids = await makePath(subject, maker, owner);
  const call = (clientId: string, query = ''): Promise<Exchange> =>
    send(subject, asking(subject, clientId, query), (request) => withIds(request, operation.path, ids));
  const counts = async (): Promise<string> => {
    const { body, headers } = (await call(other)).response;
    const numbers = leavesOf(body).filter(([name, value]) => COUNT.test(name) && typeof value === 'number');
    return JSON.stringify([numbers, headers['x-total-count'], headers['content-range']]);
  };
  const makeOne = (): Promise<Id | undefined> => make(subject, maker, { name: 'id', clientId: owner, ids });
  const id = await makeOne();
  if (id === undefined) return `${maker.name} has made no object with an id`;
  const another = await makeOne();
  const size = `${parameterLike(operation, /^(limit|page_?size|per_?page|first|top|size)$/i, 'limit')}=1`;
  const cursors = cursorsIn(operation, size, (await call(owner, size)).response);
  const found = await eachOf(['', ...widerFor(owner), ...cursors], async (query): Promise<Finding> => {
    // What keeps responses by their URL has this one.
    await call(owner, query);
    const exchange = await call(other, query);
    const { response } = exchange;
    if (response.status >= 300 || !(shows(response, id) || shows(response, another))) return undefined;
    return { text: `the list of another client${query && ` with ?${query}`} has what the first has made`, exchange };
  });
  const [first, second] = [await counts(), await counts()];
  await makeOne();
  const counted = isBelow(operation.path, maker) && first === second && (await counts()) !== first;
  return [...found, counted ? 'a total of another client counts what the first has made' : undefined];
}

const makersOfApi = new WeakMap<object, ReadonlySet<Operation>>();

/** Each POST whose objects belong to clients, by any operation. */
function ownedMakers(subject: Subject): readonly Operation[] {
  const find = (operation: Operation): readonly Operation[] =>
    placesOf({ ...subject, operation }).flatMap((place) => makerOf({ ...subject, operation }, place) ?? []);
  const known = makersOfApi.get(subject.api) ?? new Set(subject.api.tested.flatMap(find));
  makersOfApi.set(subject.api, known);
  return [...known];
}

/** Whether an operation may list what a POST has made: at its path, below it, under its name, or as a search. */
function isListOf({ path }: Operation, maker: Operation): boolean {
  if (path.split('{').length !== maker.path.split('{').length) return false;
  const name = maker.path.split('/').at(-1) ?? '';
  return isBelow(path, maker) || path.split('/').includes(name) || SEARCH.test(path);
}

function isBelow(path: string, maker: Operation): boolean {
  return `${path}/`.startsWith(`${maker.path}/`);
}

function shows({ body, text }: ApiResponse, id: Id | undefined): boolean {
  return hasId(body, id) || (typeof id === 'string' && id.length >= TELLING_LENGTH && text.includes(id));
}

function hasId(value: unknown, id: unknown): boolean {
  if (Array.isArray(value)) return value.some((one) => one === id || hasId(one, id));
  return isObject(value) && (value['id'] === id || Object.values(value).some((one) => hasId(one, id)));
}

function parameterLike({ parameters }: Operation, pattern: RegExp, usual: string): string {
  return parameters.find((one) => one.in === 'query' && pattern.test(one.name))?.name ?? usual;
}

/** Queries for the next page, as a response names it. */
function cursorsIn(operation: Operation, size: string, { body, headers }: ApiResponse): readonly string[] {
  const name = parameterLike(operation, /cursor|token|after|continu/i, 'cursor');
  const [, linked = ''] = /<[^>]*\?([^>]*)>;[^,]*\brel="?next/.exec(String(headers['link'])) ?? [];
  const named = leavesOf(body).flatMap(([member, value]) => {
    if (typeof value !== 'string' || !/cursor|next|token/i.test(member)) return [];
    return value.includes('?') ? value.slice(value.indexOf('?') + 1) : `${name}=${encodeURIComponent(value)}`;
  });
  return [linked, linked.replace(size, `${size}000`), ...named.map((one) => `${one}&${size}`), ...named].filter(
    (one) => one !== '',
  );
}

/** A member that is readOnly must not take a value that a caller sends. */
export async function findOverwritten(subject: Subject): Promise<Found> {
  const { operation, api } = subject;
  const body = attempt((): unknown => JSON.parse(operation.request().body ?? ''));
  const properties = propertiesOf(api.document, operation.operation.requestBody);
  const names = Object.keys(properties).filter((name) => properties[name]?.['readOnly'] === true);
  if (!['POST', 'PUT', 'PATCH'].includes(operation.method) || !isObject(body) || names.length === 0)
    return 'its request has no readOnly member';
  return eachOf(names, async (name) => {
    const { response: usual } = await send(subject, sufficient(subject));
    const value = otherValue(properties[name] ?? {}, isObject(usual.body) ? usual.body[name] : undefined);
    const { response } = await send(subject, sufficient(subject), (request) => withMember(request, name, value));
    const got = isObject(response.body) ? response.body[name] : undefined;
    return response.status < 300 && isDeepStrictEqual(got, value) ? `${name} is readOnly, and took a value` : undefined;
  });
}

/** A value of the type of a member that it does not have by itself. */
function otherValue({ type, enum: choices }: Readonly<Record<string, unknown>>, usual: unknown): unknown {
  const types = [type].flat();
  if (Array.isArray(choices)) return (choices as readonly unknown[]).find((one) => one !== usual && one !== null);
  if (types.includes('boolean')) return usual !== true;
  return types.includes('integer') || types.includes('number') ? 987_654 : 'contract-cases';
}
