import type { RequestListener, ServerResponse } from 'node:http';
import { authenticate, explain } from 'tillgate';
import type { AuthenticateOptions, Gate } from 'tillgate';
import type { ClientResource } from '../auth-server/index';
import { consoleApp, summaryOf } from './app';
import { RequestLog } from './request-log';
import type { LoggedRequest, ReportedRequest } from './request-log';
import { whyOf, whyOfToken } from './why';
import type { Facts } from './why';

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
  const { clients, routes, clock = Date.now, capacity = 500 } = options;
  if (options.production ?? process.env['NODE_ENV'] === 'production') {
    throw new TypeError('createConsole(): the console is for development and refuses NODE_ENV=production');
  }
  const client = (id: string): ClientResource | undefined => clients().find(({ client_id }) => client_id === id);
  const facts: Facts = { ...options, client };
  const changes = timelines(clients, clock);
  /** The generation of the last token that each client has fetched; 0 where it has sent one from before a change. */
  const fetched = new Map<string, number>();
  const streams = new Set<ServerResponse>();
  const isClient = (id: string): boolean => client(id) !== undefined;
  const problems = `${options.baseUrl.replace(/\/$/, '')}/problems/`;
  const log = new RequestLog({ capacity, clock, isClient, onRequest, problems });
  let gate: Gate | undefined;

  function onRequest(entry: LoggedRequest): void {
    const { server, method, path, status } = entry;
    if (server === 'tokens' && method !== 'GET' && status < 300 && path.startsWith('/clients')) {
      changes.update();
      for (const id of fetched.keys()) if (!client(id)) fetched.delete(id);
      publish('clients', {});
    }
    noteToken(entry);
    publish('request', summaryOf(entry));
    if (entry.why?.fix !== undefined) options.onRefusal?.(entry);
  }

  function noteToken({ server, path, status, client_id, why }: LoggedRequest): void {
    const one = client_id === undefined ? undefined : client(client_id);
    const isFetched = server === 'tokens' && status === 200 && path.endsWith('/connect/token');
    const isSuperseded = why?.checks.some(({ reason }) => reason === 'superseded') === true;
    if (!one || !(isFetched || (isSuperseded && !fetched.has(one.client_id)))) return;
    const wasOut = isOut(one);
    fetched.set(one.client_id, isFetched ? one.generation : 0);
    if (wasOut !== isOut(one)) publish('clients', {});
  }

  /** Whether a client had a token before the last change, and has not fetched one since. */
  function isOut({ client_id, generation }: ClientResource): boolean {
    return (fetched.get(client_id) ?? generation) < generation;
  }

  function publish(event: string, data: object): void {
    const message = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    for (const stream of streams) {
      // The page opens it again and reads what it has missed.
      if (stream.writableLength > MAX_BUFFERED) stream.destroy();
      else stream.write(message);
    }
  }

  function state(): object {
    changes.update();
    return {
      base_url: options.baseUrl,
      auth_url: options.issuer,
      docs_url: options.docsUrl ?? null,
      command: options.command,
      scopes: options.scopes ?? null,
      routes,
      clients: clients().map((one) => ({ ...one, out: isOut(one), timeline: changes.of(one.client_id) })),
    };
  }

  async function inspect(token: string): Promise<object> {
    // Opened late: most consoles are never asked.
    gate ??= authenticate({ ...options.gate, onDecision: undefined, logger: false });
    await gate.ready();
    const explanation = await explain(token, { gate });
    const scopes = explanation.auth?.scopes ?? [];
    const reached = explanation.accepted ? routes.filter(({ requires }) => isEnough(scopes, requires)) : [];
    return {
      ...whyOfToken(explanation, token, facts),
      status: explanation.status ?? 200,
      routes: reached.map(({ method, path }) => `${method} ${path}`),
    };
  }

  async function replay(entry: LoggedRequest, json: string | undefined): Promise<object> {
    // A path without a slash would change the host; brackets replace what was left out to hide a secret.
    const isWhole = entry.server === 'api' && /^\/[^[\]]*$/.test(entry.path);
    if (!isWhole) throw new Error('Only a request to the API whose whole path is known can be sent again.');
    const { status, text } = await options.call({ ...entry, json });
    return { status, text };
  }

  /** Takes what the observer in the process of the API reports. */
  function record({ decision, ...request }: ReportedRequest): void {
    const why = decision && whyOf(decision, facts);
    // A superseded token is signed: its client is known.
    const claimed = why?.verified === true ? why.claims?.['client_id'] : undefined;
    const client_id = decision?.client_id ?? (typeof claimed === 'string' ? claimed : undefined);
    log.add({ ...request, server: 'api', client_id, why });
  }

  const app = consoleApp({ log, state, record, inspect, replay, onClear: () => publish('cleared', {}), streams });

  return {
    serve(tokenServer) {
      const rest = log.observe(tokenServer);
      changes.update();
      return function serveConsole(req, res) {
        if (/^\/console(?![^/?])/.test(req.url ?? '')) return void app(req, res);
        // What a change is compared with: clients may have been registered without a request.
        if (req.method !== 'GET') changes.update();
        rest(req, res);
      };
    },
    async close() {
      for (const stream of streams) stream.end();
      await gate?.close();
    },
  };
}

function isEnough(scopes: readonly string[], requires: Route['requires']): boolean {
  return requires.some((set) => set.every((scope) => scopes.includes(scope)));
}

const MAX_ENTRIES = 50;

/** What has become of the client credentials since the console was opened; `update` compares them with those of the last call. */
function timelines(list: () => readonly ClientResource[], clock: () => number) {
  /** Newest first; what began each generation, and when (ISO 8601). */
  const entries = new Map<string, { generation: number; at: string; cause: string }[]>();
  let known: ReadonlyMap<string, ClientResource> | undefined;

  function update(): void {
    const clients = new Map(list().map((client) => [client.client_id, client]));
    for (const client of clients.values()) {
      const before = known?.get(client.client_id);
      if (before?.generation === client.generation) continue;
      const { generation, created_at: at } = client;
      const registered = { generation: Date.parse(at), at, cause: 'registered' };
      const earlier = before ? (entries.get(client.client_id) ?? []) : [registered];
      const cause = before ? causeOf(before, client) : 'changed before the console was opened';
      const isChanged = before !== undefined || generation !== registered.generation;
      const changed = { generation, at: new Date(before ? clock() : generation).toISOString(), cause };
      entries.set(client.client_id, [...(isChanged ? [changed] : []), ...earlier].slice(0, MAX_ENTRIES));
    }
    for (const clientId of entries.keys()) if (!clients.has(clientId)) entries.delete(clientId);
    known = clients;
  }

  return { update, of: (clientId: string) => entries.get(clientId) ?? [] };
}

function causeOf(before: ClientResource, after: ClientResource): string {
  const scopes = after.scope.split(' ');
  const removed = before.scope.split(' ').filter((scope) => !scopes.includes(scope));
  if (after.description !== before.description) return 'Description changed';
  if (removed.length > 0) return `scopes removed: ${removed.join(' ')}`;
  if (after.disabled && !before.disabled) return 'disabled';
  if (after.secrets[0]?.id !== before.secrets[0]?.id) return 'secret rotated';
  return 'tokens revoked';
}
