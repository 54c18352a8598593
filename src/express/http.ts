import type { IncomingMessage, ServerResponse } from 'node:http';
import { loggablePath } from '../core/loggable-path';

/** Continues with the next middleware, or with the app's error handler. */
export type Next = (error?: unknown) => void;

/** The request of Express 4 or 5: every member beyond Node's own is optional. */
export interface GateRequest extends IncomingMessage {
  originalUrl?: string;
  baseUrl?: string;
  route?: { readonly path?: unknown };
  body?: unknown;
  /** Request id, if something before the gate has set one. */
  id?: unknown;
}

/** An Express middleware, without Express's types in the declaration. */
export type Middleware = (req: IncomingMessage, res: ServerResponse, next: Next) => void;

/** The path for logs: without tokens that a caller put into the URL by mistake. */
export function pathOf(req: GateRequest): string {
  return loggablePath(req.originalUrl ?? req.url ?? '');
}

/** The route as it was declared, for messages to developers: `GET /v1/orders/:id`. */
export function routeOf(req: GateRequest): string {
  const declared = req.route?.path;
  const path = typeof declared === 'string' ? `${req.baseUrl ?? ''}${declared}` : pathOf(req);
  return `${req.method} ${path}`;
}

/** The id of a request, if it has one that is a string or a number. */
export function requestIdOf(req: GateRequest): string | undefined {
  const id = Object.hasOwn(req, 'id') ? req.id : undefined;
  return typeof id === 'string' || typeof id === 'number' ? String(id) : undefined;
}
