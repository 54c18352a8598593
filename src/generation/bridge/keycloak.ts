import { ownValue } from '../../core/objects';
import { readOptions } from '../../core/options';
import { readBody } from '../../core/read-body';
import { isSecureUrl } from '../../core/urls';
import { systemClock } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { SourceError } from '../source-error';
import type { ChangeFeed, CredentialChange } from './bridge';

/** Options of `keycloakChanges()`. */
export interface KeycloakChangesOptions extends Pick<Dependencies, 'fetch' | 'clock'> {
  /** URL of the realm: `https://login.example.com/realms/shop`. */
  readonly url: string;
  /** A client with a service account that has the roles `view-events` and `view-clients` of `realm-management`. */
  readonly clientId: string;
  readonly clientSecret: string;
  /** Accepts `http:` beyond loopback. Default `false`. */
  readonly allowHttp?: boolean | undefined;
  /** How far back to read without a cursor, in ms: the longest life of a token. Default one day. */
  readonly horizonMs?: number | undefined;
}

/** How far the feed has been read. */
export interface KeycloakCursor {
  /** Time of the last event. */
  readonly sinceMs: number;
  /** Client ids by Keycloak's internal id: an event of a deleted client does not say which one it was. */
  readonly clients: Readonly<Record<string, string>>;
  /** Ids of the events since shortly before that time: the next read gets them again. */
  readonly seen: readonly string[];
}

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 10_485_760;
const PAGE = 100;
const DAY_MS = 86_400_000;
/** Events become visible when their transaction ends, which can be after a later one of another node. */
const OVERLAP_MS = 60_000;

/**
 * Reads the admin events of a Keycloak realm: clients that were updated or deleted, whose secret was regenerated, or
 * that lost a client scope. Roles that a service account loses are not among them. The realm must save admin events
 * (Realm settings, Events); with their representations, also clients are known that were created and deleted while
 * nobody was reading. Tested with Keycloak 26.
 *
 * @throws TypeError when an option is wrong
 */
export function keycloakChanges(options: KeycloakChangesOptions): ChangeFeed<KeycloakCursor> {
  const names = ['url', 'clientId', 'clientSecret', 'allowHttp', 'horizonMs', 'fetch', 'clock'] as const;
  const read = readOptions('keycloakChanges', options, names);
  const url = (read.string('url') ?? '').replace(/\/$/, '');
  const [, server, name] =
    /^(.+)\/realms\/([^/]+)$/.exec(url) ??
    read.refuse('url', 'the URL of a realm, such as https://login.example.com/realms/shop');
  if (!options.allowHttp && !isSecureUrl(url)) read.refuse('url', 'an https: URL');
  const clientId = read.string('clientId') ?? read.refuse('clientId', 'the id of a client');
  const clientSecret = read.string('clientSecret') ?? read.refuse('clientSecret', 'its secret');
  const { fetch = globalThis.fetch, clock = systemClock, horizonMs = DAY_MS } = options;
  const admin = `${server}/admin/realms/${name}`;
  let token = { value: '', expiresAtMs: 0 };

  async function send(target: string, init: RequestInit): Promise<Response> {
    return fetch(target, { redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS), ...init });
  }

  async function accessToken(): Promise<string> {
    if (clock() < token.expiresAtMs) return token.value;
    const credentials = [clientId, clientSecret].map(encodeURIComponent).join(':');
    const response = await send(`${url}/protocol/openid-connect/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    });
    const document = await jsonOf(response, 'the token endpoint');
    const value = ownValue(document, 'access_token');
    const lifetime = ownValue(document, 'expires_in');
    if (typeof value !== 'string' || typeof lifetime !== 'number')
      throw new SourceError('no access token in the response');
    token = { value, expiresAtMs: clock() + lifetime * 500 };
    return value;
  }

  async function get(path: string, query = ''): Promise<unknown> {
    const headers = { authorization: `Bearer ${await accessToken()}` };
    const response = await send(`${admin}/${path}${query}`, { headers });
    if (response.status === 401) token = { value: '', expiresAtMs: 0 };
    return response.status === 404 ? undefined : jsonOf(response, path);
  }

  async function pages(path: string, filter = ''): Promise<Readonly<Record<string, unknown>>[]> {
    const rows: Readonly<Record<string, unknown>>[] = [];
    for (;;) {
      const page = await get(path, `?${filter}first=${rows.length}&max=${PAGE}`);
      if (!Array.isArray(page)) throw new SourceError(`${path}: not a list`);
      rows.push(...(page as typeof rows));
      if (page.length < PAGE) return rows;
    }
  }

  /** The client id after an event: what the event says, or else Keycloak. Any update may have changed it. */
  async function nameNow(
    event: Readonly<Record<string, unknown>>,
    internalId: string,
    known: string | undefined,
  ): Promise<string | undefined> {
    const isOfClient = event['resourcePath'] === `clients/${internalId}`;
    const said = isOfClient ? clientIdIn(event['representation']) : undefined;
    if (said !== undefined) return said;
    if (known !== undefined && !(isOfClient && event['operationType'] === 'UPDATE')) return known;
    const client = await get(`clients/${encodeURIComponent(internalId)}`);
    return idsOf(client)[0]?.[1];
  }

  async function allClients(): Promise<Record<string, string>> {
    return Object.fromEntries((await pages('clients')).flatMap(idsOf));
  }

  /** Without them there is nothing to follow, and every read would look complete. */
  async function requireAdminEvents(): Promise<void> {
    const config = await get('events/config');
    if (ownValue(config, 'adminEventsEnabled') === true) return;
    throw new SourceError(
      'the realm saves no admin events: switch them on in Realm settings, Events, Admin events settings',
    );
  }

  return {
    async read(cursor) {
      await requireAdminEvents();
      const clients: Record<string, string> = { ...(cursor ? cursor.clients : await allClients()) };
      let sinceMs = cursor?.sinceMs ?? clock() - horizonMs;
      const events = await pages('admin-events', `dateFrom=${sinceMs - OVERLAP_MS}&`);
      const changes: CredentialChange[] = [];
      const problems: string[] = [];
      const seen = new Set(cursor?.seen);
      const repeated: string[] = [];
      for (const event of events.reverse()) {
        const { id, time, resourcePath } = event;
        const internalId = /^clients\/([^/]+)/.exec(String(resourcePath))?.[1];
        if (typeof id !== 'string' || typeof time !== 'number' || internalId === undefined) continue;
        repeated.push(id);
        sinceMs = Math.max(sinceMs, time);
        if (seen.has(id)) continue;
        const before = ownValue(clients, internalId) as string | undefined;
        const after = (await nameNow(event, internalId, before)) ?? before;
        if (after !== undefined) clients[internalId] = after;
        if (!discardsTokens(event)) continue;
        // A client that was renamed has tokens under both ids.
        for (const clientId of new Set([before, after])) {
          if (clientId !== undefined) changes.push({ clientId, changedAtMs: time });
        }
        if (after === undefined)
          problems.push(
            `Keycloak no longer knows the client ${JSON.stringify(internalId)}, and its events do not name it`,
          );
      }
      // The same object tells that there is nothing to save.
      if (cursor && repeated.every((id) => seen.has(id))) return { changes, problems, cursor };
      changes.sort((a, b) => a.changedAtMs - b.changedAtMs);
      return { changes, problems, cursor: { sinceMs, clients, seen: repeated } };
    },
  };
}

/** What a client may do after the event is less than before, or it has another secret or description. */
function discardsTokens({ operationType, resourcePath }: Readonly<Record<string, unknown>>): boolean {
  if (operationType === 'UPDATE' || operationType === 'DELETE') return true;
  return operationType === 'ACTION' && String(resourcePath).includes('/client-secret');
}

/** The client id in the representation of an event, which the realm may or may not save. */
function clientIdIn(representation: unknown): string | undefined {
  if (typeof representation !== 'string') return undefined;
  try {
    const clientId = ownValue(JSON.parse(representation), 'clientId');
    return typeof clientId === 'string' ? clientId : undefined;
  } catch {
    return undefined;
  }
}

function idsOf(client: unknown): [string, string][] {
  const [id, clientId] = [ownValue(client, 'id'), ownValue(client, 'clientId')];
  return typeof id === 'string' && typeof clientId === 'string' ? [[id, clientId]] : [];
}

async function jsonOf(response: Response, what: string): Promise<unknown> {
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new SourceError(`${what}: responded with ${response.status}${ADVICE[response.status] ?? ''}`);
  }
  const body = response.body ? await readBody(response.body, MAX_BYTES) : undefined;
  if (body === undefined) throw new SourceError(`${what}: responded with more than ${MAX_BYTES} bytes`);
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch {
    throw new SourceError(`${what}: did not respond with JSON`);
  }
}

const ADVICE: Readonly<Record<number, string>> = {
  401: ': check client id and secret',
  403: ': the service account needs the roles view-events and view-clients of realm-management',
};
