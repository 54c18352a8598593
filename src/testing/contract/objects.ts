import { isDeepStrictEqual } from 'node:util';
import { attempt, isObject } from 'tillgate/internal';
import { dereference } from '../openapi/document';
import { send } from './operation';
import type { CaseContext } from './api';
import { eachOf, sufficient } from './probe';
import type { Found } from './probe';
import type { ApiRequest } from './responses';

/** Names of the properties of a response with `writeOnly`, or of a request with `readOnly`. */
export function membersMarked(mark: 'writeOnly' | 'readOnly', context: CaseContext, status = 0): readonly string[] {
  const { document } = context.api;
  const operation = context.operation.operation as unknown as Readonly<Record<string, unknown>>;
  const responses = isObject(operation['responses']) ? operation['responses'] : {};
  const holder = mark === 'writeOnly' ? (responses[String(status)] ?? responses['2XX']) : operation['requestBody'];
  const found = dereference(document, holder);
  const content = isObject(found) && isObject(found['content']) ? Object.values(found['content'])[0] : undefined;
  const schema = dereference(document, isObject(content) ? content['schema'] : undefined);
  const items = isObject(schema) && 'items' in schema ? dereference(document, schema['items']) : schema;
  const parts = isObject(items) && Array.isArray(items['allOf']) ? items['allOf'] : [items];
  return parts.flatMap((one) => {
    const part = dereference(document, one);
    const properties = isObject(part) && isObject(part['properties']) ? part['properties'] : {};
    const isMarked = (property: unknown): boolean => {
      const resolved = dereference(document, property);
      return isObject(resolved) && resolved[mark] === true;
    };
    return Object.keys(properties).filter((name) => isMarked(properties[name]));
  });
}

/**
 * What one client has made must be closed to another with the same scopes, where the document says so: a parameter of the
 * path with `x-owner: client`, and a POST to the path before it that returns the `id`.
 */
export async function findForeignObjects(context: CaseContext): Promise<Found> {
  const { path, method, parameters } = context.operation;
  const { api } = context;
  const [owner, other] = api.settings.owners;
  const owned = parameters.find((one) => (one as { readonly 'x-owner'?: unknown })['x-owner'] === 'client');
  if (!owned || owned.in !== 'path') return 'no parameter of its path has x-owner: client';
  const place = `{${owned.name}}`;
  const maker = api.contextOf('POST', path.slice(0, path.indexOf(place) - 1));
  if (!maker) return 'no POST of the path before its id makes an object';
  const { response: made } = await send(maker, sufficient(maker, owner));
  const id = isObject(made.body) ? (made.body[owned.name] ?? made.body['id']) : undefined;
  if (made.status >= 300 || (typeof id !== 'string' && typeof id !== 'number'))
    return `${maker.name} has made no object with an id`;
  const filled = path.replace(place, encodeURIComponent(String(id)));
  const prepared = context.prepare();
  const [, query] = prepared.target.split('?', 2);
  const target = query === undefined ? filled : `${filled}?${query}`;
  const toOwn = (request: ApiRequest): ApiRequest => ({ ...request, target });
  const reader = api.contextOf('GET', path);
  const isThere = async (): Promise<boolean> => {
    if (!reader) return false;
    const { response: own } = await send(reader, sufficient(reader, owner), (request) => ({
      ...request,
      target: filled,
    }));
    return own.status < 300;
  };
  const wasThere = await isThere();
  const exchange = await send(context, sufficient(context, other), toOwn);
  const { status } = exchange.response;
  if (status < 300) return [{ text: `${method} of what another client has made: ${status}`, exchange }];
  const isGone = wasThere && !(await isThere());
  return [isGone ? `${method} by another client: the object is gone afterwards` : undefined];
}

/** A member that is readOnly must not take a value that a caller sends. */
export async function findOverwritten(context: CaseContext): Promise<Found> {
  const { method } = context.operation;
  const prepared = context.prepare();
  const body = attempt((): unknown => JSON.parse(prepared.body ?? ''));
  const names = isObject(body) ? membersMarked('readOnly', context) : [];
  if (!['POST', 'PUT', 'PATCH'].includes(method) || !isObject(body) || names.length === 0)
    return 'its request has no readOnly member';
  return eachOf(names, async (name) => {
    const value = typeof body[name] === 'number' ? 987_654 : 'contract-cases';
    const { response } = await send(context, sufficient(context), (request) => ({
      ...request,
      body: JSON.stringify({ ...body, [name]: value }),
    }));
    const got = isObject(response.body) ? response.body[name] : undefined;
    return response.status < 300 && isDeepStrictEqual(got, value) ? `${name} is readOnly, and took a value` : undefined;
  });
}
