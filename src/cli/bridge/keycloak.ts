import type { PublisherOptions } from '@tillgate/stores';
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
  /** Names of client scopes by Keycloak's internal id; absent in a cursor of an earlier version. */
  readonly scopes?: Readonly<Record<string, string>>;
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
 * that lost a client scope, and service accounts that were disabled. A client scope that is deleted or renamed at the realm,
 * the realm's "not before" and "sign out all sessions" discard for all known clients. Roles that a service account loses are
 * not among them. The realm must save admin events
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

  async function exchange(
    target: string,
    headers: Record<string, string>,
    { body, mayBeMissing = false }: { readonly body?: URLSearchParams; readonly mayBeMissing?: boolean } = {},
  ): Promise<unknown> {
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
      if (status === 404 && mayBeMissing) return undefined;
      const type = response.headers.get('content-type') ?? '';
      throw new ReportError(`${shown} responded with ${status}${adviceOn(status, type)}`);
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
    const document = await exchange(`${url}/protocol/openid-connect/token`, headers, { body: form });
    const { access_token: value, expires_in: lifetime } = membersOf(document);
    if (typeof value !== 'string' || typeof lifetime !== 'number')
      throw new ReportError('no access token in the response');
    token = { value, expiresAtMs: clock() + lifetime * 500 };
    return value;
  }

  async function get(path: string, mayBeMissing = false): Promise<unknown> {
    const headers = { authorization: `Bearer ${await accessToken()}` };
    return exchange(`${admin}${path && '/'}${path}`, headers, { mayBeMissing });
  }

  async function pages(path: string, filter = ''): Promise<Row[]> {
    const rows: Row[] = [];
    for (;;) {
      const page = await get(`${path}?${filter}first=${rows.length}&max=${PAGE}`);
      if (!Array.isArray(page)) throw new ReportError(`${path}: not a list`);
      rows.push(...(page as Row[]));
      if (page.length < PAGE) return rows;
    }
  }

  /** The client id after an event: what the event says, or else Keycloak. Any update may have changed it. */
  async function nameNow(event: Row, internalId: string, known: string | undefined): Promise<string | undefined> {
    const { resourcePath, operationType } = event;
    const isOfClient = resourcePath === `clients/${internalId}`;
    // The realm may save representations, or not.
    const { clientId: said } = isOfClient ? representationOf(event) : {};
    if (typeof said === 'string') return said;
    if (known !== undefined && !(isOfClient && operationType === 'UPDATE')) return known;
    const client = await get(`clients/${encodeURIComponent(internalId)}`, true);
    return idsOf(client)[0]?.[1] ?? known;
  }

  /** Names of the client scopes by internal id; none where they cannot be listed. */
  async function listScopes(): Promise<Record<string, string>> {
    const list = await get('client-scopes', true);
    const rows = Array.isArray(list) ? list.map(membersOf) : [];
    return Object.fromEntries(rows.map(({ id, name }) => [String(id), String(name)]));
  }

  /** Until when an event of the realm discards the tokens of all clients, in ms; a text where that cannot be told. */
  async function realmDiscards(event: Row, time: number): Promise<number | string | undefined> {
    if (event['resourcePath'] === 'logout-all') return time;
    const { notBefore = membersOf(await get('', true))['notBefore'] } = representationOf(event);
    if (typeof notBefore === 'number') return notBefore > 0 ? Math.min(notBefore * 1000, time) : undefined;
    return event['operationType'] === 'ACTION' ? time : NO_REALM;
  }

  /** The client whose service account an event has disabled. */
  async function disabledAccount(event: Row, userId: string, clients: readonly string[]): Promise<string | undefined> {
    const said = representationOf(event);
    const user =
      said['username'] === undefined ? membersOf(await get(`users/${encodeURIComponent(userId)}`, true)) : said;
    const { username, enabled = said['enabled'] } = user;
    // Keycloak writes user names in lower case.
    const isAccount = (clientId: string): boolean => `service-account-${clientId}`.toLowerCase() === username;
    return enabled === false ? clients.find(isAccount) : undefined;
  }

  return {
    async read(cursor) {
      // Without admin events there is nothing to follow, and every read would look complete.
      const { adminEventsEnabled } = membersOf(await get('events/config'));
      if (adminEventsEnabled !== true) throw new ReportError(NO_EVENTS);
      const known = cursor?.clients ?? Object.fromEntries((await pages('clients')).flatMap(idsOf));
      const clients: Record<string, string> = { ...known };
      const listed = cursor?.scopes ?? (await listScopes());
      const scopes: Record<string, string> = { ...listed };
      let scopesNow: Record<string, string> | undefined;
      let sinceMs = cursor?.sinceMs ?? clock() - maxTokenAgeSeconds * 1000;
      const events = await pages('admin-events', `dateFrom=${sinceMs - OVERLAP_MS}&`);
      const changes: CredentialChange[] = [];
      const problems: string[] = [];
      const seen = new Set(cursor?.seen);
      const repeated: string[] = [];
      function tellAccount(error: unknown): undefined {
        if (!(error instanceof ReportError)) throw error;
        problems.push(`a user was changed, who may be a service account: ${error.message}`);
      }
      for (const event of events.reverse()) {
        const { id, time } = event;
        const subject = subjectOf(event);
        if (typeof id !== 'string' || typeof time !== 'number' || subject === undefined) continue;
        repeated.push(id);
        sinceMs = Math.max(sinceMs, time);
        if (seen.has(id)) continue;
        const [kind, internalId] = subject;
        const discardAll = (changedAtMs: number): void => {
          for (const clientId of new Set(Object.values(clients))) {
            if (clientId !== '*') changes.push({ clientId, changedAtMs });
          }
        };
        if (kind === 'realm') {
          const discards = await realmDiscards(event, time);
          if (typeof discards === 'number') discardAll(discards);
          if (typeof discards === 'string') problems.push(discards);
          continue;
        }
        if (kind === 'users') {
          const account = await disabledAccount(event, internalId, Object.values(clients)).catch(tellAccount);
          if (account !== undefined) changes.push({ clientId: account, changedAtMs: time });
          continue;
        }
        if (kind === 'client-scopes') {
          const { name = (scopesNow ??= await listScopes())[internalId] } = representationOf(event);
          const isDeleted = event['operationType'] === 'DELETE';
          const before = Object.hasOwn(scopes, internalId) ? scopes[internalId] : undefined;
          if (event['operationType'] !== 'CREATE' && (isDeleted || name !== before)) discardAll(time);
          if (typeof name === 'string' && !isDeleted) scopes[internalId] = name;
          continue;
        }
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
      return { changes, problems, cursor: { sinceMs, clients, scopes, seen: repeated } };
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

/** What an event is about, and its internal id: of mappers and the like of a scope or a user it is none of these. */
function subjectOf({
  resourceType,
  resourcePath,
  operationType,
}: Row): readonly [kind: string, internalId: string] | undefined {
  const path = typeof resourcePath === 'string' ? resourcePath : '';
  const isRealm = resourceType === 'REALM' && operationType === 'UPDATE';
  if (isRealm || path === 'push-revocation' || path === 'logout-all') return ['realm', ''];
  const [, kind = '', internalId = '', rest] = /^(clients|client-scopes|users)\/([^/]+)(\/.*)?$/.exec(path) ?? [];
  if (kind === '' || (kind !== 'clients' && rest !== undefined)) return undefined;
  return kind === 'users' && operationType !== 'UPDATE' ? undefined : [kind, internalId];
}

/** What the realm has saved of the object; no members where it saves none. */
function representationOf({ representation }: Row): Row {
  return membersOf(typeof representation === 'string' ? parsed(representation) : undefined);
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
const NO_REALM =
  'the realm was changed, and its "not before" cannot be read: give the service account the role view-realm, or save representations';
const ROLES = ': the service account needs the roles view-events and view-clients of realm-management';
const BLOCKED = 'a proxy in front of Keycloak may block the admin API: let the bridge reach this URL';

/** Keycloak itself refuses with JSON; a page comes from a proxy. */
function adviceOn(status: number, contentType: string): string {
  if (status === 401) return ': check client id and secret';
  if (status === 404) return `: check the URL of the realm; ${BLOCKED}`;
  if (status !== 403) return '';
  if (contentType.startsWith('text/html')) return `, with a page that is not Keycloak's: ${BLOCKED}`;
  return contentType.startsWith('application/json') ? ROLES : `${ROLES}; or ${BLOCKED}`;
}
