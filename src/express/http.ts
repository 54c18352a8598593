import type { IncomingMessage, ServerResponse } from 'node:http';

/** The request as Express hands it on; every member beyond node's own is optional, so Express 4 and 5 both fit. */
export interface GateRequest extends IncomingMessage {
  originalUrl?: string;
  baseUrl?: string;
  route?: { readonly path?: unknown };
  body?: unknown;
  /** Request id, if something before the gate has set one. */
  id?: unknown;
}

/** An Express middleware, without Express's types in the declaration. */
export type Middleware = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/** Method and path, never the query: tokens that stand there by mistake must not reach a log. */
export function pathOf(req: GateRequest): string {
  const [path = ''] = (req.originalUrl ?? req.url ?? '').split('?', 1);
  return path;
}

/** The route as it was declared, for messages to developers: `GET /v1/orders/:id`. */
export function routeOf(req: GateRequest): string {
  const declared = req.route?.path;
  const path = typeof declared === 'string' ? `${req.baseUrl ?? ''}${declared}` : pathOf(req);
  return `${req.method} ${path}`;
}

/** The id of a request, where there is one that fits into a body. */
export function requestIdOf(req: GateRequest): string | undefined {
  return typeof req.id === 'string' || typeof req.id === 'number' ? String(req.id) : undefined;
}
