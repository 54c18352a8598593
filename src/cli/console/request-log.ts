import type { RequestListener, ServerResponse } from 'node:http';
import { attempt, isObject, loggablePath } from 'tillgate/internal';
import { withoutSecrets } from '../auth-server/log';
import type { ReportedDecision, Why } from './why';

/** One request, without query, headers and body, and without anything that can be a secret or a token. */
export interface LoggedRequest {
  /** Counts up. */
  readonly id: number;
  /** ISO 8601. */
  readonly at: string;
  /** The one that the request came to. */
  readonly server: 'api' | 'tokens';
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
  /** URL of the page about the reason: `type` of a problem (RFC 9457), where it is one of the API. */
  readonly type?: string;
  /** What the gate decided. */
  readonly why?: Why;
}

/** A request when its response is complete, with whatever may be secret. */
interface ObservedRequest extends Pick<LoggedRequest, 'server' | 'method' | 'path' | 'status' | 'duration_ms'> {
  readonly request_id?: unknown;
  readonly client_id?: string | undefined;
  readonly body?: string | undefined;
  readonly why?: Why | undefined;
}

/** What the observer in the process of the API reports. */
export interface ReportedRequest extends Omit<ObservedRequest, 'server' | 'client_id' | 'why'> {
  readonly decision?: ReportedDecision;
}

type Refusal = Pick<LoggedRequest, 'reason' | 'detail' | 'type'>;

/** Bodies of refusals are smaller. */
const MAX_BODY = 16_384;
const MAX_DETAIL = 400;
/** The API reference page and its files, and what resource servers read again and again. */
const NOISE = /\/docs(\/[^/]*)?$|\/favicon\.ico$|\/\.well-known\/|^\/generations/;

interface RequestLogOptions {
  readonly capacity: number;
  readonly clock: () => number;
  /** Whether a client is registered: another id that is not verified may be a secret, sent in the wrong place. */
  readonly isClient: (id: string) => boolean;
  readonly onRequest: (entry: LoggedRequest) => void;
  /** What the URLs of the problems of the API begin with: a link to anything else could come from anybody. */
  readonly problems: string;
}

/** The latest requests of both servers, `capacity` of them. */
export class RequestLog {
  readonly #options: RequestLogOptions;
  readonly #entries: LoggedRequest[] = [];
  #count = 0;

  constructor(options: RequestLogOptions) {
    this.#options = options;
  }

  /** Oldest first. */
  get entries(): readonly LoggedRequest[] {
    return this.#entries;
  }

  clear(): void {
    this.#entries.length = 0;
  }

  /** The same handler, each of whose requests becomes an entry when its response is complete. */
  observe(handler: RequestListener): RequestListener {
    return (req, res) => {
      const { url: path = '', method = '' } = req;
      const startedMs = performance.now();
      let body: string | undefined;
      noticeRefusal(res, (text) => (body = text));
      res.once('close', () => {
        const claimed = credentialsOf(res);
        const client_id = claimed !== undefined && this.#options.isClient(claimed) ? claimed : undefined;
        const duration_ms = performance.now() - startedMs;
        const request_id = res.getHeader('x-request-id');
        this.add({ server: 'tokens', method, path, status: res.statusCode, duration_ms, request_id, client_id, body });
      });
      handler(req, res);
    };
  }

  /** Keeps a request as it was observed; `body` is that of a refusal. */
  add(request: ObservedRequest): void {
    const { server, method, status, duration_ms, request_id, client_id, body, why } = request;
    const { capacity, clock, onRequest, problems } = this.#options;
    const path = withoutSecrets(loggablePath(request.path));
    if (status < 400 && NOISE.test(path)) return;
    const entry: LoggedRequest = {
      id: ++this.#count,
      at: new Date(clock()).toISOString(),
      server,
      method: withoutSecrets(method),
      path,
      status,
      duration_ms: Math.round(duration_ms * 10) / 10,
      ...(typeof request_id === 'string' && { request_id: withoutSecrets(request_id) }),
      ...(client_id !== undefined && { client_id }),
      ...(body !== undefined && refusalOf(body, problems)),
      ...(why && { why }),
    };
    this.#entries.push(entry);
    if (this.#entries.length > capacity) this.#entries.shift();
    onRequest(entry);
  }
}

function noticeRefusal(res: ServerResponse, onRefusal: (body: string) => void): void {
  const end = res.end.bind(res) as (...args: unknown[]) => ServerResponse;
  res.end = function noticeEnd(...args: unknown[]) {
    const [chunk] = args;
    const isText = typeof chunk === 'string' || Buffer.isBuffer(chunk);
    if (res.statusCode >= 400 && isText && chunk.length <= MAX_BODY) onRefusal(String(chunk));
    return end(...args);
  } as typeof res.end;
}

/** Reads what a refusal says: a problem (RFC 9457), or an OAuth error (RFC 6749 section 5.2). */
function refusalOf(body: string, problems: string): Refusal {
  const problem = attempt(() => JSON.parse(body) as unknown);
  if (!isObject(problem)) return {};
  const { code, error, type, detail = problem['error_description'], errors } = problem;
  const reason = code ?? error;
  const places = Array.isArray(errors)
    ? errors.filter(isObject).map(({ path, message }) => ` ${String(path)}: ${String(message)}.`)
    : [];
  return {
    ...(typeof reason === 'string' && { reason: withoutSecrets(reason) }),
    ...(typeof detail === 'string' && { detail: withoutSecrets([detail, ...places].join('')).slice(0, MAX_DETAIL) }),
    ...(typeof type === 'string' && type.startsWith(problems) && { type: withoutSecrets(type) }),
  };
}

/** The client of a request to the token endpoint, which keeps it there. */
function credentialsOf(res: ServerResponse): string | undefined {
  const { locals } = res as { locals?: { readonly credentials?: { readonly clientId?: unknown } } };
  const id = locals?.credentials?.clientId;
  return typeof id === 'string' ? id : undefined;
}
