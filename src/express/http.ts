import type { IncomingMessage, ServerResponse } from 'node:http';
import { loggablePath } from '../core/loggable-path';

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

/** The path as a log may show it: tokens that stand in the address by mistake must not reach one. */
export function pathOf(req: GateRequest): string {
  return loggablePath(req.originalUrl ?? req.url ?? '');
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
