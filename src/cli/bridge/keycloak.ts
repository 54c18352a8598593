import {
  attempt,
  clientAuthorization,
  dependencies,
  fetchJson,
  isObject,
  isSecureUrl,
  option,
  ownMembers,
  ownValue,
  parseJson,
  readOptions,
  refuseOption,
  SourceError,
  TOKEN_AGE_OPTION,
  WILDCARD,
} from 'tillgate/internal';
import type { Exchange, FetchError, TableOf } from 'tillgate/internal';
import type { Dependencies } from 'tillgate';
import type { ChangeReports, CredentialChange } from './bridge';

/** Options of `keycloakChanges()`. */
export interface KeycloakChangesOptions extends Pick<Dependencies, 'fetch' | 'clock'> {
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

const KEYCLOAK_OPTIONS = {
  url: option.required(option('the URL of a realm, such as https://login.example.com/realms/shop', readRealm)),
  clientId: option.required(option.string(), 'the id of a client'),
  clientSecret: option.required(option.string(), 'its secret'),
  allowHttp: option.boolean(false),
  maxTokenAgeSeconds: TOKEN_AGE_OPTION,
  ...dependencies('fetch', 'clock'),
} satisfies TableOf<KeycloakChangesOptions>;

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 10_485_760;
const PAGE = 100;
/** Events become visible when their transaction ends, which can be after a later one of another node. */
const OVERLAP_MS = 60_000;

type Row = Readonly<Record<string, unknown>>;

/**
 * Reads the admin events of a Keycloak realm: clients that were updated or deleted, whose secret was regenerated, or
 * that lost a client scope. Roles that a service account loses are not among them. The realm must save admin events
 * (Realm settings, Events); with their representations, also clients are known that were created and deleted while
 * nobody was reading. Tested with Keycloak 26.
 *
 * @throws TypeError when an option is wrong
 */
export function keycloakChanges(options: KeycloakChangesOptions): ChangeReports<KeycloakCursor> {
  const given = readOptions('keycloakChanges', options, KEYCLOAK_OPTIONS);
  const { clientId, clientSecret, maxTokenAgeSeconds, fetch, clock } = given;
  const { url, admin } = given.url;
  if (!given.allowHttp && !isSecureUrl(url)) {
    refuseOption({ factory: 'keycloakChanges', name: 'url' }, 'an https: URL', url);
  }
  let token = { value: '', expiresAtMs: 0 };

  async function send(target: string, options: Pick<Exchange, 'headers' | 'form'>): Promise<unknown> {
    try {
      const limits = { signal: AbortSignal.timeout(TIMEOUT_MS), maxBytes: MAX_BYTES };
      return await fetchJson(target, { fetch, ...limits, ...options });
    } catch (cause) {
      const { message, status } = cause as FetchError;
      if (status === 401) token.expiresAtMs = 0;
      if (status === 404 && !options.form) return undefined;
      throw new SourceError(`${message}${ADVICE[status ?? 0] ?? ''}`, { cause });
    }
  }

  async function accessToken(): Promise<string> {
    if (clock() < token.expiresAtMs) return token.value;
    const document = await send(`${url}/protocol/openid-connect/token`, {
      headers: { authorization: clientAuthorization(clientId, clientSecret) },
      form: new URLSearchParams({ grant_type: 'client_credentials' }),
    });
    const { access_token: value, expires_in: lifetime } = membersOf(document);
    if (typeof value !== 'string' || typeof lifetime !== 'number')
      throw new SourceError('no access token in the response');
    token = { value, expiresAtMs: clock() + lifetime * 500 };
    return value;
  }

  async function get(path: string, query = ''): Promise<unknown> {
    const headers = { authorization: `Bearer ${await accessToken()}` };
    return send(`${admin}/${path}${query}`, { headers });
  }

  async function pages(path: string, filter = ''): Promise<Row[]> {
    const rows: Row[] = [];
    for (;;) {
      const page = await get(path, `?${filter}first=${rows.length}&max=${PAGE}`);
      if (!Array.isArray(page)) throw new SourceError(`${path}: not a list`);
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
    const { clientId: said } = membersOf(attempt(() => parseJson(Buffer.from(text))));
    if (typeof said === 'string') return said;
    if (known !== undefined && !(isOfClient && operationType === 'UPDATE')) return known;
    const client = await get(`clients/${encodeURIComponent(internalId)}`);
    return idsOf(client)[0]?.[1] ?? known;
  }

  return {
    async read(cursor) {
      // Without admin events there is nothing to follow, and every read would look complete.
      const { adminEventsEnabled } = membersOf(await get('events/config'));
      if (adminEventsEnabled !== true) throw new SourceError(NO_EVENTS);
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
        const before = ownValue(clients, internalId) as string | undefined;
        const after = await nameNow(event, internalId, before);
        if (after !== undefined) clients[internalId] = after;
        if (!discardsTokens(event)) continue;
        // A client that was renamed has tokens under both ids.
        for (const clientId of new Set([before, after])) {
          if (clientId !== undefined && clientId !== WILDCARD) changes.push({ clientId, changedAtMs: time });
        }
        const shown = JSON.stringify(internalId);
        if (after === WILDCARD) problems.push(`the client ${shown} is called "*", which is not a client id: rename it`);
        if (!after) problems.push(`Keycloak no longer knows the client ${shown}, and its events do not name it`);
      }
      // The same object tells that there is nothing to save.
      if (cursor && repeated.every((id) => seen.has(id))) return { changes, problems, cursor };
      changes.sort((a, b) => a.changedAtMs - b.changedAtMs);
      return { changes, problems, cursor: { sinceMs, clients, seen: repeated } };
    },
  };
}

function readRealm(given: unknown): { readonly url: string; readonly admin: string } | undefined {
  const [, server, name] = /^(.+)\/realms\/([^/]+)\/?$/.exec(String(given)) ?? [];
  if (server === undefined) return undefined;
  return { url: `${server}/realms/${name}`, admin: `${server}/admin/realms/${name}` };
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
  return isObject(value) ? value : NO_MEMBERS;
}

const NO_MEMBERS: Row = ownMembers({});
const NO_EVENTS = 'the realm saves no admin events: switch them on in Realm settings, Events, Admin events settings';
const ADVICE: Readonly<Record<number, string>> = {
  401: ': check client id and secret',
  403: ': the service account needs the roles view-events and view-clients of realm-management',
};
