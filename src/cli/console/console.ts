import type { RequestListener, ServerResponse } from 'node:http';
import { authenticate, explain, type AuthenticateOptions, type Gate } from 'tillgate';
import type { ClientResource } from '../auth-server/index';
import { consoleApp, summaryOf } from './app';
import { RequestLog, type LoggedRequest, type ReportedRequest } from './request-log';
import { Timelines } from './timelines';
import { whyOf, whyOfToken, type Facts } from './why';

/** Options of {@link createConsole}. */
export interface ConsoleOptions extends Pick<Facts, 'issuer' | 'audience' | 'advise'> {
  /** `{base_url}`, for links. */
  readonly baseUrl: string;
  /** The clients of the token server. */
  readonly clients: () => readonly ClientResource[];
  /** Scopes that clients may have; `undefined`: any. */
  readonly scopes: readonly string[] | undefined;
  /** Routes of the API with the scopes that they require, as its OpenAPI document has them. */
  readonly routes: readonly Route[];
  /** Its documentation page, if it is known to have one. */
  readonly docsUrl: string | undefined;
  /** How `tillgate` is called in another terminal. */
  readonly command: string;
  /** Calls the API as a client, with a new token. Rejects with an error that says what to do. */
  readonly call: (
    request: Pick<LoggedRequest, 'method' | 'path' | 'client_id'> & { readonly json: string | undefined },
  ) => Promise<{ readonly status: number; readonly text: string }>;
  /** Options of the gate that the token inspector asks: those of the API. */
  readonly gate: AuthenticateOptions;
  /** Gets each request that the gate of the API has refused. */
  readonly onRefusal?: (entry: LoggedRequest) => void;
  /** Requests that are kept. Default 500. */
  readonly capacity?: number;
  /** Whether this is production, where the console refuses to start. Default: whether `NODE_ENV` is `production`. */
  readonly production?: boolean;
  readonly clock?: () => number;
}

/** A route, and alternatives of scopes each of which is enough. */
interface Route {
  readonly method: string;
  readonly path: string;
  readonly requires: readonly (readonly string[])[];
}

/** The console for development: clients, requests and why they were refused, on one page of the token server. */
export interface Console {
  /** The token server with the console at `/console`. */
  serve(tokenServer: RequestListener): RequestListener;
  /** Ends the event streams. */
  close(): Promise<void>;
}

/** Bytes that wait for a reader who is too slow. */
const MAX_BUFFERED = 1_000_000;

/**
 * Makes the console of a token server in this process, and of an API whose requests are reported to it
 * (`static/observer.cjs`).
 *
 * @throws TypeError in production
 */
export function createConsole(options: ConsoleOptions): Console {
  if (options.production ?? process.env['NODE_ENV'] === 'production') {
    throw new TypeError('createConsole(): the console is for development and refuses NODE_ENV=production');
  }
  return new DevelopmentConsole(options);
}

class DevelopmentConsole implements Console {
  readonly log: RequestLog;
  readonly streams = new Set<ServerResponse>();
  readonly #options: ConsoleOptions;
  readonly #facts: Facts;
  readonly #changes: Timelines;
  /** The generation of the last token that each client has fetched; 0 where it has sent one from before a change. */
  readonly #fetched = new Map<string, number>();
  #gate: Gate | undefined;

  constructor(options: ConsoleOptions) {
    const { baseUrl, clients, clock = Date.now, capacity = 500 } = options;
    this.#options = options;
    this.#facts = { ...options, client: (id) => this.#client(id) };
    this.#changes = new Timelines(clients, clock);
    this.log = new RequestLog({
      capacity,
      clock,
      isClient: (id) => this.#client(id) !== undefined,
      onRequest: (entry) => this.#onRequest(entry),
      problems: `${baseUrl.replace(/\/$/, '')}/problems/`,
    });
  }

  serve(tokenServer: RequestListener): RequestListener {
    const app = consoleApp(this);
    const rest = this.log.observe(tokenServer);
    this.#changes.update();
    return (req, res) => {
      if (/^\/console(?![^/?])/.test(req.url ?? '')) return void app(req, res);
      // What a change is compared with: clients may have been registered without a request.
      if (req.method !== 'GET') this.#changes.update();
      rest(req, res);
    };
  }

  async close(): Promise<void> {
    for (const stream of this.streams) stream.end();
    await this.#gate?.close();
  }

  state(): object {
    const { baseUrl, issuer, docsUrl = null, command, scopes = null, routes, clients } = this.#options;
    this.#changes.update();
    const shown = clients().map((one) => {
      return { ...one, out: this.#isOut(one), timeline: this.#changes.of(one.client_id) };
    });
    return { base_url: baseUrl, auth_url: issuer, docs_url: docsUrl, command, scopes, routes, clients: shown };
  }

  /** Takes what the observer in the process of the API reports. */
  record({ decision, ...request }: ReportedRequest): void {
    const why = decision && whyOf(decision, this.#facts);
    // A superseded token is signed: its client is known.
    const claimed = why?.verified === true ? why.claims?.['client_id'] : undefined;
    const client_id = decision?.client_id ?? (typeof claimed === 'string' ? claimed : undefined);
    this.log.add({ ...request, server: 'api', client_id, why });
  }

  async inspect(token: string): Promise<object> {
    const { routes } = this.#options;
    // Opened late: most consoles are never asked.
    this.#gate ??= authenticate({ ...this.#options.gate, onDecision: undefined, logger: false });
    await this.#gate.ready();
    const explanation = await explain(token, { gate: this.#gate });
    const scopes = explanation.auth?.scopes ?? [];
    const isGranted = (required: readonly string[]): boolean => required.every((scope) => scopes.includes(scope));
    const reached = explanation.accepted ? routes.filter(({ requires }) => requires.some(isGranted)) : [];
    return {
      ...whyOfToken(explanation, token, this.#facts),
      status: explanation.status ?? 200,
      routes: reached.map(({ method, path }) => `${method} ${path}`),
    };
  }

  async replay(entry: LoggedRequest, json: string | undefined): Promise<object> {
    // A path without a slash would change the host; brackets replace what was left out to hide a secret.
    const isWhole = entry.server === 'api' && /^\/[^[\]]*$/.test(entry.path);
    if (!isWhole) throw new Error('Only a request to the API whose whole path is known can be sent again.');
    const { status, text } = await this.#options.call({ ...entry, json });
    return { status, text };
  }

  clear(): void {
    this.log.clear();
    this.#publish('cleared', {});
  }

  #client(id: string): ClientResource | undefined {
    return this.#options.clients().find(({ client_id }) => client_id === id);
  }

  #onRequest(entry: LoggedRequest): void {
    const { server, method, path, status } = entry;
    if (server === 'tokens' && method !== 'GET' && status < 300 && path.startsWith('/clients')) {
      this.#changes.update();
      for (const id of this.#fetched.keys()) if (!this.#client(id)) this.#fetched.delete(id);
      this.#publish('clients', {});
    }
    this.#noteToken(entry);
    this.#publish('request', summaryOf(entry));
    if (entry.why?.fix !== undefined) this.#options.onRefusal?.(entry);
  }

  #noteToken({ server, path, status, client_id, why }: LoggedRequest): void {
    const one = client_id === undefined ? undefined : this.#client(client_id);
    const isFetched = server === 'tokens' && status === 200 && path.endsWith('/connect/token');
    const isSuperseded = why?.checks.some(({ reason }) => reason === 'superseded') === true;
    if (!one || !(isFetched || (isSuperseded && !this.#fetched.has(one.client_id)))) return;
    const wasOut = this.#isOut(one);
    this.#fetched.set(one.client_id, isFetched ? one.generation : 0);
    if (wasOut !== this.#isOut(one)) this.#publish('clients', {});
  }

  /** Whether a client had a token before the last change, and has not fetched one since. */
  #isOut({ client_id, generation }: ClientResource): boolean {
    return (this.#fetched.get(client_id) ?? generation) < generation;
  }

  #publish(event: string, data: object): void {
    const message = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    for (const stream of this.streams) {
      // The page opens it again and reads what it has missed.
      if (stream.writableLength > MAX_BUFFERED) stream.destroy();
      else stream.write(message);
    }
  }
}
