import type { ApiRequest } from './responses';

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
