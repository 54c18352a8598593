import type { PublisherOptions } from 'tillgate/generations';
import type { AuthenticateOptions } from 'tillgate';
import { isSecureUrl } from 'tillgate/internal';
import { checkOptions, COUNT, FUNCTION, ReportError } from './bridge';
import type { ChangeReports, CredentialChange } from './bridge';

/** Options of `keycloakChanges()`. */
export interface KeycloakChangesOptions extends Pick<AuthenticateOptions, 'fetch'>, Pick<PublisherOptions, 'clock'> {
  /** URL of the realm: `https://login.example.com/realms/shop`. */
  readonly url: string;
  /** A client with a service account that has the roles `view-events` and `view-clients` of `realm-management`. */
  readonly clientId: string;
  readonly clientSecret: string;
  /** Accepts `http:` beyond loopback. Default `false`. */
  readonly allowHttp?: boolean | undefined;
  /** `maxTokenAgeSeconds` of the gates that read: how far back to read without a cursor. Default 86400. */
  readonly maxTokenAgeSeconds?: number | undefined;
}

/** How far the events have been read. */
export interface KeycloakCursor {
  /** Time of the last event. */
  readonly sinceMs: number;
  /** Client ids by Keycloak's internal id: an event of a deleted client does not say which one it was. */
  readonly clients: Readonly<Record<string, string>>;
  /** Ids of the events since shortly before that time: the next read gets them again. */
  readonly seen: readonly string[];
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

const KEYCLOAK_CHECKS = {
  url: [
    'the URL of a realm, such as https://login.example.com/realms/shop',
    (value: unknown) => readRealm(value) !== undefined,
  ],
  clientId: ['the id of a client', isText],
  clientSecret: ['its secret', isText],
  allowHttp: ['true or false', (value: unknown) => value === undefined || typeof value === 'boolean'],
  maxTokenAgeSeconds: COUNT,
  fetch: FUNCTION,
  clock: FUNCTION,
} as const;

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 10_485_760;
const PAGE = 100;
/** Events become visible when their transaction ends, which can be after a later one of another node. */
const OVERLAP_MS = 60_000;

type Row = Readonly<Record<string, unknown>>;

/**
 * Reads the admin events of a Keycloak realm: clients that were updated or deleted, whose secret was regenerated, or
 * that lost a client scope. Roles that a service account loses are not among them. The realm must save admin events
 * (Realm settings, Events); with their representations, clients are also known that were created and deleted
 * between two reads. Tested with Keycloak 26.
 *
 * @throws TypeError when an option is wrong
 */
export function keycloakChanges(options: KeycloakChangesOptions): ChangeReports<KeycloakCursor> {
  checkOptions('keycloakChanges', options, KEYCLOAK_CHECKS);
  const { clientId, clientSecret, maxTokenAgeSeconds = 86_400, clock = Date.now } = options;
  const { fetch: send = (target, init) => fetch(target, init) } = options;
  const { url, admin } = readRealm(options.url) as Realm;
  if (options.allowHttp !== true && !isSecureUrl(url)) {
    throw new TypeError(`keycloakChanges(): option "url" must be an https: URL, got ${url}`);
  }
  let token = { value: '', expiresAtMs: 0 };

  async function exchange(target: string, headers: Record<string, string>, body?: URLSearchParams): Promise<unknown> {
    const shown = target.replace(/\?.*/, '');
    let response: Response;
    let text: string | undefined;
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      response = await send(target, {
        method: body ? 'POST' : 'GET',
        headers,
        body: body ?? null,
        redirect: 'manual',
        signal,
      });
      text = response.ok ? await readText(response) : undefined;
    } catch (cause) {
      const { code = 'no response' } = Object((cause as Error).cause) as { code?: string };
      throw new ReportError(`${shown} could not be fetched (${code})`, { cause });
    }
    const { status } = response;
    if (!response.ok) {
      await response.body?.cancel();
      if (status === 401) token.expiresAtMs = 0;
      if (status === 404 && !body) return undefined;
      throw new ReportError(`${shown} responded with ${status}${ADVICE[status] ?? ''}`);
    }
    if (text === undefined) throw new ReportError(`${shown} responded with more than ${MAX_BYTES} bytes`);
    const value = parsed(text);
    if (value === undefined) throw new ReportError(`${shown} did not respond with JSON`);
    return value;
  }

  async function accessToken(): Promise<string> {
    if (clock() < token.expiresAtMs) return token.value;
    const form = new URLSearchParams({ grant_type: 'client_credentials' });
    const headers = { authorization: basic(clientId, clientSecret) };
    const document = await exchange(`${url}/protocol/openid-connect/token`, headers, form);
    const { access_token: value, expires_in: lifetime } = membersOf(document);
    if (typeof value !== 'string' || typeof lifetime !== 'number')
      throw new ReportError('no access token in the response');
    token = { value, expiresAtMs: clock() + lifetime * 500 };
    return value;
  }

  async function get(path: string, query = ''): Promise<unknown> {
    const headers = { authorization: `Bearer ${await accessToken()}` };
    return exchange(`${admin}/${path}${query}`, headers);
  }

  async function pages(path: string, filter = ''): Promise<Row[]> {
    const rows: Row[] = [];
    for (;;) {
      const page = await get(path, `?${filter}first=${rows.length}&max=${PAGE}`);
      if (!Array.isArray(page)) throw new ReportError(`${path}: not a list`);
      rows.push(...(page as Row[]));
      if (page.length < PAGE) return rows;
    }
  }

  /** The client id after an event: what the event says, or else Keycloak. Any update may have changed it. */
  async function nameNow(event: Row, internalId: string, known: string | undefined): Promise<string | undefined> {
    const { resourcePath, operationType, representation } = event;
    const isOfClient = resourcePath === `clients/${internalId}`;
    // The realm may save representations, or not.
    const text = isOfClient && typeof representation === 'string' ? representation : '';
    const { clientId: said } = membersOf(parsed(text));
    if (typeof said === 'string') return said;
    if (known !== undefined && !(isOfClient && operationType === 'UPDATE')) return known;
    const client = await get(`clients/${encodeURIComponent(internalId)}`);
    return idsOf(client)[0]?.[1] ?? known;
  }

  return {
    async read(cursor) {
      // Without admin events there is nothing to follow, and every read would look complete.
      const { adminEventsEnabled } = membersOf(await get('events/config'));
      if (adminEventsEnabled !== true) throw new ReportError(NO_EVENTS);
      const known = cursor?.clients ?? Object.fromEntries((await pages('clients')).flatMap(idsOf));
      const clients: Record<string, string> = { ...known };
      let sinceMs = cursor?.sinceMs ?? clock() - maxTokenAgeSeconds * 1000;
      const events = await pages('admin-events', `dateFrom=${sinceMs - OVERLAP_MS}&`);
      const changes: CredentialChange[] = [];
      const problems: string[] = [];
      const seen = new Set(cursor?.seen);
      const repeated: string[] = [];
      for (const event of events.reverse()) {
        const { id, time, resourcePath } = event;
        const internalId = typeof resourcePath === 'string' ? /^clients\/([^/]+)/.exec(resourcePath)?.[1] : undefined;
        if (typeof id !== 'string' || typeof time !== 'number' || internalId === undefined) continue;
        repeated.push(id);
        sinceMs = Math.max(sinceMs, time);
        if (seen.has(id)) continue;
        const before = Object.hasOwn(clients, internalId) ? clients[internalId] : undefined;
        const after = await nameNow(event, internalId, before);
        if (after !== undefined) clients[internalId] = after;
        if (!discardsTokens(event)) continue;
        // A client that was renamed has tokens under both ids.
        for (const clientId of new Set([before, after])) {
          if (clientId !== undefined && clientId !== '*') changes.push({ clientId, changedAtMs: time });
        }
        const shown = JSON.stringify(internalId);
        if (after === '*') problems.push(`the client ${shown} is called "*", which is not a client id: rename it`);
        if (!after) problems.push(`Keycloak no longer knows the client ${shown}, and its events do not name it`);
      }
      // The same object tells that there is nothing to save.
      if (cursor && repeated.every((id) => seen.has(id))) return { changes, problems, cursor };
      changes.sort((a, b) => a.changedAtMs - b.changedAtMs);
      return { changes, problems, cursor: { sinceMs, clients, seen: repeated } };
    },
  };
}

interface Realm {
  readonly url: string;
  readonly admin: string;
}

function readRealm(given: unknown): Realm | undefined {
  const [, server, name] = /^(https?:\/\/.+)\/realms\/([^/]+)\/?$/.exec(String(given)) ?? [];
  return server === undefined || !URL.canParse(server)
    ? undefined
    : { url: `${server}/realms/${name}`, admin: `${server}/admin/realms/${name}` };
}

/** RFC 6749 section 2.3.1: id and secret are form-encoded first. */
function basic(clientId: string, clientSecret: string): string {
  const credentials = [clientId, clientSecret].map((text) => new URLSearchParams({ '': text }).toString().slice(1));
  return `Basic ${Buffer.from(credentials.join(':')).toString('base64')}`;
}

/** The body as text; `undefined` where it is too large. */
async function readText({ body }: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > MAX_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** What a client may do after the event is less than before, or it has another secret or description. */
function discardsTokens({ operationType, resourcePath }: Row): boolean {
  if (operationType === 'UPDATE' || operationType === 'DELETE') return true;
  return operationType === 'ACTION' && typeof resourcePath === 'string' && resourcePath.includes('/client-secret');
}

function idsOf(client: unknown): [string, string][] {
  const { id, clientId } = membersOf(client);
  return typeof id === 'string' && typeof clientId === 'string' ? [[id, clientId]] : [];
}

/** The members of parsed JSON; none where it is not an object. */
function membersOf(value: unknown): Row {
  return typeof value === 'object' && value !== null ? (value as Row) : {};
}

const NO_EVENTS = 'the realm saves no admin events: switch them on in Realm settings, Events, Admin events settings';
const ADVICE: Readonly<Record<number, string>> = {
  401: ': check client id and secret',
  403: ': the service account needs the roles view-events and view-clients of realm-management',
};
