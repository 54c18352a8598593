import { isObject } from 'tillgate/internal';
import { dereference } from '../openapi/document';
import type { Operation } from './operation';
import { writeParameter } from './parameters';
import { shapeOfPath, withBody, withHeaders, withIds } from './requests';
import type { Id, Ids } from './requests';
import type { ApiRequest, ApiResponse } from './responses';
import { sampleOf, schemaIn, mergedSchema } from './sampler';
import { send, sufficient } from './subject';
import type { Subject } from './subject';

/** A place of a request for the id of what a client has made, or for a list of such ids. */
export interface Place {
  readonly name: string;
  /** Its segment, where it is in the path. */
  readonly at?: number;
  readonly isList: boolean;
  readonly put: (request: ApiRequest, value: Id | readonly Id[]) => ApiRequest;
}

type Change = (request: ApiRequest) => ApiRequest;

/** Objects that need others need more than this rarely. */
const MAX_DEPTH = 3;

/** The ids of objects along the path of an operation, by segment: each is made by a POST to the path before it. */
export async function makePath(subject: Subject, operation: Operation, by?: string, depth = 0): Promise<Ids> {
  const ids = new Map<number, Id>();
  const isAt = (before: readonly string[]) => (one: Operation) =>
    shapeOfPath(one.path) === shapeOfPath(before.join('/'));
  const parts = operation.path.split('/');
  for (const [at, part] of parts.entries()) {
    const maker = part.includes('{') ? makersOf(subject).find(isAt(parts.slice(0, at))) : undefined;
    if (!maker || maker === operation) continue;
    const id = await make(subject, maker, { name: part.replace(/.*\{|\}.*/g, ''), clientId: by, ids, depth });
    if (id !== undefined) ids.set(at, id);
  }
  return ids;
}

/** Makes the objects that a request names, where nothing gives their ids; later requests have those of the path. */
export async function makeMissing(subject: Subject): Promise<Change | undefined> {
  const { operation, api, findings } = subject;
  if (operation.access !== 'token' || Object.keys(api.settings.requestOf(operation)).length > 0) return undefined;
  const parts = shapeOfPath(operation.path).split('/');
  const ids = await makePath(subject, operation);
  for (const [at, id] of ids) findings.made.set(parts.slice(0, at + 1).join('/'), id);
  const fill = await fillOthers(subject);
  return (request) => fill(withIds(request, operation.path, ids));
}

/** Makes an object by a POST, along with what its request names. */
export async function make(
  subject: Subject,
  maker: Operation,
  by: { name: string; clientId?: string | undefined; ids?: Ids; depth?: number },
): Promise<Id | undefined> {
  const { name, clientId, depth = 0 } = by;
  if (depth > MAX_DEPTH) return undefined;
  const ids = by.ids ?? (await makePath(subject, maker, clientId, depth + 1));
  const making = { ...subject, operation: maker };
  const fill = await fillOthers(making, clientId, undefined, depth + 1);
  const token = sufficient(making, clientId === undefined ? {} : { clientId });
  const { response } = await send(making, token, (request) => fill(withIds(request, maker.path, ids)));
  return idOf(response, name);
}

/** Puts objects of a client into every place of a request, outside of its path, but one. */
export async function fillOthers(subject: Subject, clientId?: string, but?: Place, depth = 0): Promise<Change> {
  const filled: (readonly [Place, Id])[] = [];
  for (const place of placesOf(subject)) {
    const maker = place.at === undefined && place.name !== but?.name ? makerOf(subject, place) : undefined;
    const id = maker && (await make(subject, maker, { name: place.name, clientId, depth }));
    if (id !== undefined) filled.push([place, id]);
  }
  return (request) => filled.reduce((changed, [place, id]) => place.put(changed, place.isList ? [id] : id), request);
}

function idOf({ status, body, headers }: ApiResponse, name: string): Id | undefined {
  const own = isObject(body) ? body : {};
  const inner = Object.values(own).find((one) => isObject(one) && 'id' in one);
  const found = own[name] ?? own['id'] ?? (isObject(inner) ? inner['id'] : headers.location?.split('/').at(-1));
  return status < 300 && (typeof found === 'string' || typeof found === 'number') ? found : undefined;
}

function makersOf({ api }: Subject): readonly Operation[] {
  return api.tested.filter(({ method, access }) => method === 'POST' && access === 'token');
}

/** The POST to the path before an id, else to the collection that the name of the place, or the path, begins with. */
export function makerOf(subject: Subject, { name, at }: Place): Operation | undefined {
  const { operation } = subject;
  const posts = makersOf(subject).filter((one) => one !== operation);
  const stem = name.replace(/[_-]?ids?$/i, '').toLowerCase();
  const isNamed = ({ path }: Operation): boolean => path.split('/').at(-1)?.replace(/s$/, '').toLowerCase() === stem;
  const before = at === undefined ? undefined : operation.path.split('/').slice(0, at).join('/');
  return (
    posts.find(({ path }) => path === before) ??
    posts.find(isNamed) ??
    posts.find(({ path }) => path === operation.path || operation.path.startsWith(`${path}/`))
  );
}

function isOwned(document: object, given: unknown): boolean {
  const one = dereference(document, given);
  return isObject(one) && (one['x-owner'] === 'client' || (isObject(one['items']) && isOwned(document, one['items'])));
}

/** Where a request has `x-owner: client`: in its path, its query, and at any depth of its body. */
export function placesOf({ api: { document }, operation }: Subject): readonly Place[] {
  const inParameters = operation.parameters.flatMap((parameter): Place | [] => {
    const { name, in: where } = parameter;
    if (!['path', 'query', 'header'].includes(where)) return [];
    if (!isOwned(document, parameter) && !isOwned(document, parameter.schema)) return [];
    const isList = mergedSchema(document, parameter.schema).items !== undefined;
    if (where === 'path') {
      const at = operation.path.split('/').findIndex((part) => part.includes(`{${name}}`));
      const put: Place['put'] = (request, id) => withIds(request, operation.path, new Map([[at, id as Id]]));
      return { name, at, isList: false, put };
    }
    const put: Place['put'] = (request, value) => {
      const written = writeParameter(parameter, value);
      if (where === 'header') return withHeaders(request, { [name]: written });
      const [path = '', query = ''] = request.target.split('?', 2);
      const others = query.split('&').filter((part) => part !== '' && part.split('=', 1)[0] !== name);
      return { ...request, target: `${path}?${[...others, written].join('&')}` };
    };
    return { name, isList, put };
  });
  const members = membersOf(document, schemaIn(document, operation.operation.requestBody));
  const inBody = members.map(({ set, ...one }): Place => {
    return { ...one, put: (request, value) => withBody(request, (body) => set(body, value)) };
  });
  return [...inParameters, ...inBody];
}

type Member = Pick<Place, 'name' | 'isList'> & { readonly set: (body: unknown, value: unknown) => unknown };

/** Members with `x-owner` of a body, of its inner objects, and of the items of its lists. */
function membersOf(document: object, schema: unknown, depth = 0): readonly Member[] {
  const { items, properties } = mergedSchema(document, schema);
  const own = Object.entries(properties).flatMap(([name, one]): readonly Member[] => {
    const put = (body: unknown, value: unknown): object => ({ ...(isObject(body) && body), [name]: value });
    if (isOwned(document, one)) return [{ name, isList: mergedSchema(document, one).items !== undefined, set: put }];
    if (depth === MAX_DEPTH) return [];
    return membersOf(document, one, depth + 1).map((inner) => ({
      ...inner,
      set: (body, value) => put(body, inner.set(isObject(body) ? body[name] : undefined, value)),
    }));
  });
  if (items === undefined) return own;
  const first = (body: unknown): unknown => (Array.isArray(body) ? (body as unknown[])[0] : undefined);
  const filled = (body: unknown): unknown => first(body) ?? sampleOf(document, items);
  return own.map((inner) => ({ ...inner, set: (body, value) => [inner.set(filled(body), value)] }));
}
