import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { isObject, ownValue } from '../core/objects';
import { loggablePath } from '../core/logger';
import type { Why } from './why';

/** The server that a request came to. */
export type ServerName = 'api' | 'tokens';

/** One request, without query, headers and body, and without anything that can be a secret or a token. */
export interface LoggedRequest {
  /** Counts up. */
  readonly id: number;
  /** ISO 8601. */
  readonly at: string;
  readonly server: ServerName;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly duration_ms: number;
  readonly request_id?: string;
  readonly client_id?: string;
  /** `code` or `error` of a refusal. */
  readonly reason?: string;
  /** What the response said. */
  readonly detail?: string;
  /** What the gate decided. */
  readonly why?: Why;
}

/** The latest requests of both servers, a bounded number of them. */
export interface RequestLog {
  /** Oldest first. */
  readonly entries: readonly LoggedRequest[];
  /** The same handler, each of whose requests becomes an entry when its response is complete. */
  observe(server: ServerName, handler: RequestListener): RequestListener;
  /** Explains a request that is being handled. */
  explain(request: IncomingMessage, why: Why, clientId: string | undefined): void;
}

interface RequestLogOptions {
  readonly capacity: number;
  readonly clock: () => number;
  /** Whether a client is registered: another id that is not verified may be a secret, sent in the wrong place. */
  readonly isClient: (id: string) => boolean;
  readonly onRequest: (entry: LoggedRequest) => void;
}

interface Known {
  why?: Why;
  clientId?: string | undefined;
  refusal?: Refusal;
}

type Refusal = Pick<LoggedRequest, 'reason' | 'detail'>;

/** Bodies of refusals are smaller. */
const MAX_BODY = 16_384;
const MAX_DETAIL = 400;
/** Files of pages, and what resource servers read again and again. */
const NOISE = /\/docs\/[^/]+$|\/favicon\.ico$|\/\.well-known\/|^\/generations/;

/** Makes an empty log. */
export function requestLog({ capacity, clock, isClient, onRequest }: RequestLogOptions): RequestLog {
  const entries: LoggedRequest[] = [];
  const requests = new WeakMap<IncomingMessage, Known>();
  let count = 0;

  function registered(id: string | undefined): string | undefined {
    return id !== undefined && isClient(id) ? id : undefined;
  }

  function record(server: ServerName, req: IncomingMessage, res: ServerResponse, target: string, ms: number): void {
    const { why, clientId = registered(credentialsOf(res)), refusal } = requests.get(req) ?? {};
    const path = withoutSecrets(loggablePath(target));
    if (res.statusCode < 400 && NOISE.test(path)) return;
    const requestId = res.getHeader('x-request-id');
    const entry: LoggedRequest = {
      id: ++count,
      at: new Date(clock()).toISOString(),
      server,
      method: req.method ?? '',
      path,
      status: res.statusCode,
      duration_ms: Math.round(ms * 10) / 10,
      ...(typeof requestId === 'string' && { request_id: requestId }),
      ...(clientId !== undefined && { client_id: clientId }),
      ...refusal,
      ...(why && { why }),
    };
    entries.push(entry);
    if (entries.length > capacity) entries.shift();
    onRequest(entry);
  }

  return {
    entries,
    explain: (request, why, clientId) => void Object.assign(requests.get(request) ?? {}, { why, clientId }),
    observe(server, handler) {
      return function observed(req, res) {
        const known: Known = {};
        const target = req.url ?? '';
        const startedMs = performance.now();
        requests.set(req, known);
        noticeRefusal(res, (refusal) => (known.refusal = refusal));
        res.once('close', () => record(server, req, res, target, performance.now() - startedMs));
        handler(req, res);
      };
    },
  };
}

/** Reads what a refusal says: a problem (RFC 9457), or an OAuth error (RFC 6749 section 5.2). */
function noticeRefusal(res: ServerResponse, onRefusal: (refusal: Refusal) => void): void {
  const end = res.end.bind(res) as (...args: unknown[]) => ServerResponse;
  res.end = function noticeEnd(...args: unknown[]) {
    const [chunk] = args;
    const isText = typeof chunk === 'string' || Buffer.isBuffer(chunk);
    if (res.statusCode >= 400 && isText && chunk.length <= MAX_BODY) onRefusal(refusalOf(String(chunk)));
    return end(...args);
  } as typeof res.end;
}

function refusalOf(body: string): Refusal {
  let problem: unknown;
  try {
    problem = JSON.parse(body);
  } catch {
    return {};
  }
  const reason = ownValue(problem, 'code') ?? ownValue(problem, 'error');
  const detail = ownValue(problem, 'detail') ?? ownValue(problem, 'error_description');
  const errors = ownValue(problem, 'errors');
  const places = Array.isArray(errors)
    ? errors.filter(isObject).map(({ path, message }) => ` ${String(path)}: ${String(message)}.`)
    : [];
  return {
    ...(typeof reason === 'string' && { reason: withoutSecrets(reason) }),
    ...(typeof detail === 'string' && { detail: withoutSecrets([detail, ...places].join('')).slice(0, MAX_DETAIL) }),
  };
}

/** A secret has 43 characters; a token begins with the base64url of `{"`. */
function withoutSecrets(text: string): string {
  return text.replace(/eyJ[\w-]{8,}(\.[\w-]*)*/g, '[token]').replace(/[\w-]{43,}/g, ({ length }) => `[${length}]`);
}

/** The client of a request to the token endpoint, which keeps it there. */
function credentialsOf(res: ServerResponse): string | undefined {
  const id = ownValue(ownValue((res as { locals?: unknown }).locals, 'credentials'), 'clientId');
  return typeof id === 'string' ? id : undefined;
}
