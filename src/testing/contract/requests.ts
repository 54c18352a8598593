import { attempt, isObject } from 'tillgate/internal';
import type { ApiRequest } from './responses';

/** The id of an object. */
export type Id = string | number;
/** Ids by the segments of a path. */
export type Ids = ReadonlyMap<number, Id>;

/** Another form of the request of an operation; without a sufficient token it must stay closed. */
export interface Variant {
  /** For messages: `with X-Original-URL: /health`. */
  readonly name: string;
  readonly change: (request: ApiRequest) => ApiRequest;
  /** What it puts together: sent one by one where all of them at once are open. */
  readonly parts?: readonly Variant[];
  /** Whether another operation, or a page for anybody, may respond to it. */
  readonly isElsewhere?: boolean | undefined;
}

/** A request with these headers too. */
export function withHeaders(request: ApiRequest, headers: Readonly<Record<string, string>>): ApiRequest {
  return { ...request, headers: { ...request.headers, ...headers } };
}

/** A request with this in its query too. */
export function withQuery(request: ApiRequest, query: string): ApiRequest {
  return { ...request, target: `${request.target}${request.target.includes('?') ? '&' : '?'}${query}` };
}

/** A request with another body, made from its JSON. */
export function withBody(request: ApiRequest, change: (body: unknown) => unknown): ApiRequest {
  const body = attempt((): unknown => JSON.parse(request.body ?? '{}'));
  return { ...request, body: JSON.stringify(change(body)) };
}

/** A request with one more member in its body. */
export function withMember(request: ApiRequest, name: string, value: unknown): ApiRequest {
  return withBody(request, (body) => ({ ...(isObject(body) && body), [name]: value }));
}

/** `/tabs/{}` of `/tabs/{id}`. */
export function shapeOfPath(path: string): string {
  return path.replace(/\{[^}]*\}/g, '{}');
}

/** A request with the ids of objects in the segments of its path that have parameters. */
export function withIds(request: ApiRequest, path: string, ids: Ids): ApiRequest {
  const [own = '', ...query] = request.target.split('?');
  const parts = path.split('/');
  const segments = own.split('/').map((segment, at) => {
    const part = parts[at] ?? '';
    const id = part.includes('{') ? ids.get(at) : undefined;
    return id === undefined ? segment : part.replace(/\{[^}]*\}/, encodeURIComponent(String(id)));
  });
  return { ...request, target: [segments.join('/'), ...query].join('?') };
}

/** An id of the same form that nothing has: other digits at its end. */
export function unknownLike(id: Id): Id {
  if (typeof id === 'number') return id + 987_654;
  const digits = id.replace(/(?!^)\d(?=[^-]*$)/g, (digit) => String(9 - Number(digit)));
  if (digits !== id) return digits;
  return /^\d$/.test(id) ? `98765${id}` : [...id].reverse().join('');
}

/** A text as base64. */
export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Several variants in one request, which is open where one of them is. */
export function together(parts: readonly Variant[]): Variant & { readonly parts: readonly Variant[] } {
  return {
    name: parts.map(({ name }) => name).join(', '),
    change: (request: ApiRequest) => parts.reduce((changed, { change }) => change(changed), request),
    parts,
  };
}

/** A request with this cookie too. */
export function withCookie(request: ApiRequest, name: string, value: string): ApiRequest {
  return withHeaders(request, { cookie: [request.headers['cookie'] ?? [], `${name}=${value}`].flat().join('; ') });
}
