import { isDeepStrictEqual } from 'node:util';
import { attempt, isObject } from 'tillgate/internal';
import { dereference } from '../openapi/document';
import type { Operation } from './operation';
import { writeParameter } from './parameters';
import { isAlike } from './probe';
import type { Finding, Found } from './probe';
import type { ApiRequest } from './responses';
import { propertiesOf } from './sampler';
import { eachOf, send, sufficient } from './subject';
import type { Subject } from './subject';
import type { Exchange } from './target';

type Id = string | number;
type Ids = Id | readonly Id[];

/** A place of a request for the id of what a client has made, or for a list of such ids. */
interface Place {
  readonly name: string;
  readonly isInPath: boolean;
  readonly isList: boolean;
  readonly put: (request: ApiRequest, value: Ids) => ApiRequest;
}

/**
 * What one client has made must be closed to another with the same scopes, where the document says so: `x-owner: client` at
 * a parameter of the path or the query, at a property of the body, or at the items of either. A POST makes the object.
 */
export async function findForeignObjects(subject: Subject): Promise<Found> {
  const places = placesOf(subject);
  if (places.length === 0) return findInList(subject);
  const found = await eachOf(places, (place) => findForeignObject(subject, place));
  return found.find((one) => typeof one === 'string') ?? found.flat();
}

/** Names that APIs have for more of a list than a client may see. */
const WIDER = 'all=true include_deleted=true limit=1000 fields=* expand=*'.split(' ');

/** What one client has made is not in the list of another: plain, under usual names, and right after the first has read it. */
async function findInList(subject: Subject): Promise<Found> {
  const { operation, api } = subject;
  const { path } = operation;
  const isOwnedBelow = (one: Operation): boolean =>
    one.path.startsWith(`${path}/{`) &&
    one.parameters.some((parameter) => isOwned(parameter) || isOwned(parameter.schema));
  const maker = api.tested.find((one) => one.method === 'POST' && one.path === path && one.access === 'token');
  if (operation.method !== 'GET' || !maker || !api.tested.some(isOwnedBelow))
    return 'nothing in its request has x-owner: client';
  const [owner, other] = api.settings.owners;
  const making = { ...subject, operation: maker };
  const { response: made } = await send(making, sufficient(making, { clientId: owner }));
  const id = isObject(made.body) ? made.body['id'] : undefined;
  if (made.status >= 300 || id === undefined) return `${maker.name} has made no object with an id`;
  const { response: own } = await send(subject, sufficient(subject, { clientId: owner }));
  const cursor = isObject(own.body)
    ? (own.body['next_cursor'] ?? own.body['nextCursor'] ?? own.body['cursor'])
    : undefined;
  const cursors = typeof cursor === 'string' ? [`cursor=${encodeURIComponent(cursor)}`] : [];
  return eachOf(['', ...WIDER, ...cursors], async (query): Promise<Finding> => {
    const transport = sufficient(subject, { clientId: other });
    const exchange = await send(subject, query === '' ? transport : { ...transport, query });
    const { status, body } = exchange.response;
    if (status >= 300 || !hasId(body, id)) return undefined;
    return { text: `the list of another client${query && ` with ?${query}`} has what the first has made`, exchange };
  });
}

function hasId(value: unknown, id: unknown): boolean {
  if (Array.isArray(value)) return value.some((one) => hasId(one, id));
  return (
    isObject(value) &&
    (value['id'] === id || Object.values(value).some((one) => typeof one === 'object' && hasId(one, id)))
  );
}

async function findForeignObject(subject: Subject, place: Place): Promise<Found> {
  const { operation, api } = subject;
  const [owner, other] = api.settings.owners;
  const maker = makerOf(subject, place);
  if (!maker) return `no POST makes an object for ${place.name}`;
  const making = { ...subject, operation: maker };
  async function madeBy(clientId: string): Promise<readonly Id[]> {
    const { response } = await send(making, sufficient(making, { clientId }));
    const id = isObject(response.body) ? (response.body[place.name] ?? response.body['id']) : undefined;
    return response.status < 300 && (typeof id === 'string' || typeof id === 'number') ? [id] : [];
  }
  const [id] = await madeBy(owner);
  if (id === undefined) return `${maker.name} has made no object with an id`;

  const reader = api.tested.find(
    ({ method, path }) => method === 'GET' && path.replace(/\/\{[^/]*\}$/, '') === maker.path && path !== maker.path,
  );
  async function read(): Promise<string | undefined> {
    if (!reader) return undefined;
    const own = { ...subject, operation: reader };
    const at = reader.path.split('/').length - 1;
    const { response } = await send(own, sufficient(own, { clientId: owner }), putSegment(reader, at, id as Id));
    return response.status < 300 ? response.text : undefined;
  }
  const fills: readonly ((one: Id) => Promise<Ids>)[] = place.isList
    ? [async (one) => Promise.resolve([one]), async (one) => [...(await madeBy(other)), one]]
    : [async (one) => Promise.resolve(one)];
  const before = await read();
  const unknown = unknownLike(id);
  const plain = ({ response: { status, text } }: Exchange): string =>
    `${status} ${text.replaceAll(String(id), '*').replaceAll(String(unknown), '*')}`;
  const found = await eachOf(fills, async (fill): Promise<Finding> => {
    const ask = async (one: Id): Promise<Exchange> => {
      const value = await fill(one);
      return send(subject, sufficient(subject, { clientId: other }), (request) => place.put(request, value));
    };
    const exchange = await ask(id);
    const { status } = exchange.response;
    if (status >= 300) return undefined;
    // What filters by ids is right when it responds as to one that does not exist, apart from numbers that change anyway.
    const [one, again] = place.isInPath ? [] : [await ask(unknown), await ask(unknown)];
    const isSame =
      one && again && (plain(one) === plain(again) ? plain(one) === plain(exchange) : isAlike(one, exchange));
    if (isSame) return undefined;
    return { text: `${operation.method} of what another client has made, in ${place.name}: ${status}`, exchange };
  });
  if (found.some((one) => one !== undefined) || before === undefined || (await read()) === before) return found;
  return [`${operation.method} by another client, in ${place.name}: the object is gone or changed afterwards`];
}

function isOwned(one: unknown): boolean {
  return isObject(one) && (one['x-owner'] === 'client' || (isObject(one['items']) && isOwned(one['items'])));
}

function placesOf({ api: { document }, operation }: Subject): readonly Place[] {
  const isList = (schema: unknown): boolean => isObject(schema) && schema['type'] === 'array';
  const inParameters = operation.parameters.flatMap((parameter): Place | [] => {
    const schema = dereference(document, parameter.schema);
    const { name, in: where } = parameter;
    if (!['path', 'query'].includes(where) || !(isOwned(parameter) || isOwned(schema))) return [];
    const at = operation.path.split('/').findIndex((part) => part.includes(`{${name}}`));
    const put = (request: ApiRequest, value: Ids): ApiRequest => {
      if (where === 'path') return putSegment(operation, at, value as Id)(request);
      const [path = '', query = ''] = request.target.split('?', 2);
      const others = query.split('&').filter((part) => part !== '' && part.split('=', 1)[0] !== name);
      return { ...request, target: `${path}?${[...others, writeParameter(parameter, value)].join('&')}` };
    };
    return { name, isInPath: where === 'path', isList: isList(schema), put };
  });
  const inBody = Object.entries(propertiesOf(document, operation.operation.requestBody)).flatMap(
    ([name, schema]): Place | [] => {
      if (!isOwned(schema)) return [];
      const put = (request: ApiRequest, value: Ids): ApiRequest => withMember(request, name, value);
      return { name, isInPath: false, isList: isList(schema), put };
    },
  );
  return [...inParameters, ...inBody];
}

/** The POST to the path before an id, else to the collection that the name of the place, or the path, begins with. */
function makerOf({ api, operation }: Subject, { name }: Place): Operation | undefined {
  const posts = api.tested.filter(({ method, access }) => method === 'POST' && access === 'token');
  const [before = ''] = operation.path.split(`/{${name}}`, 1);
  const stem = name.replace(/[_-]?ids?$/i, '').toLowerCase();
  const isNamed = ({ path }: Operation): boolean => path.split('/').at(-1)?.replace(/s$/, '').toLowerCase() === stem;
  return (
    posts.find(({ path }) => path === before && path !== operation.path) ??
    posts.find((one) => one.path !== operation.path && isNamed(one)) ??
    posts.find(({ path }) => operation.path.startsWith(`${path}/`))
  );
}

/** Replaces one segment of the path of a request, whose parameter it is. */
function putSegment({ path }: Operation, at: number, id: Id): (request: ApiRequest) => ApiRequest {
  return (request) => {
    const [own = '', ...query] = request.target.split('?');
    const segment = path.split('/')[at]?.replace(/\{[^}]*\}/, encodeURIComponent(String(id))) ?? '';
    return { ...request, target: [own.split('/').with(at, segment).join('/'), ...query].join('?') };
  };
}

/** An id of the same form that nothing has. */
function unknownLike(id: Id): Id {
  if (typeof id === 'number') return id + 987_654;
  const digits = id.replace(/\d/g, (digit) => String(9 - Number(digit)));
  return digits === id ? [...id].reverse().join('') : digits;
}

function withMember(request: ApiRequest, name: string, value: unknown): ApiRequest {
  const body = attempt((): unknown => JSON.parse(request.body ?? '{}'));
  return { ...request, body: JSON.stringify({ ...(isObject(body) && body), [name]: value }) };
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
