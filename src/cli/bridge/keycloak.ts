import type { PublisherOptions } from '@tillgate/stores';
import type { AuthenticateOptions } from 'tillgate';
import { dependencies, isSecureUrl, option, readOptions, refuseOption, TOKEN_AGE_OPTION } from 'tillgate/internal';
import type { TableOf } from 'tillgate/internal';
import { ReportError, type ChangeReports, type CredentialChange } from './bridge';
import { KeycloakAdmin, membersOf, parsed, readRealm, type Row } from './keycloak-admin';

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

const KEYCLOAK_OPTIONS = {
  url: option.required(option('the URL of a realm, such as https://login.example.com/realms/shop', readRealm)),
  clientId: option.required(option.string(), 'the id of a client'),
  clientSecret: option.required(option.secret(1), 'its secret'),
  allowHttp: option.boolean(false),
  maxTokenAgeSeconds: TOKEN_AGE_OPTION,
  ...dependencies('fetch', 'clock'),
} satisfies TableOf<KeycloakChangesOptions>;

/** Events become visible when their transaction ends, which can be after a later one of another node. */
const OVERLAP_MS = 60_000;

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
  const given = readOptions('keycloakChanges', options, KEYCLOAK_OPTIONS);
  const { url: realm, allowHttp, maxTokenAgeSeconds, clock } = given;
  if (!allowHttp && !isSecureUrl(realm.url)) {
    refuseOption({ factory: 'keycloakChanges', name: 'url' }, 'an https: URL', realm.url);
  }
  const admin = new KeycloakAdmin({ ...given, realm });
  return {
    async read(cursor) {
      // Without admin events there is nothing to follow, and every read would look complete.
      const { adminEventsEnabled } = membersOf(await admin.get('events/config'));
      if (adminEventsEnabled !== true) throw new ReportError(NO_EVENTS);
      const known = cursor?.clients ?? Object.fromEntries((await admin.list('clients')).flatMap(idsOf));
      const found = new RealmChanges(admin, known, cursor?.scopes ?? (await listScopes(admin)));
      let sinceMs = cursor?.sinceMs ?? clock() - maxTokenAgeSeconds * 1000;
      const events = await admin.list('admin-events', `dateFrom=${sinceMs - OVERLAP_MS}&`);
      const seen = new Set(cursor?.seen);
      const repeated: string[] = [];
      for (const event of events.reverse()) {
        const { id, time } = event;
        const subject = subjectOf(event);
        if (typeof id !== 'string' || typeof time !== 'number' || subject === undefined) continue;
        repeated.push(id);
        sinceMs = Math.max(sinceMs, time);
        if (!seen.has(id)) await found.note(event, subject, time);
      }
      const { changes, problems, clients, scopes } = found;
      // The same object tells that there is nothing to save.
      if (cursor && repeated.every((id) => seen.has(id))) return { changes, problems, cursor };
      changes.sort((a, b) => a.changedAtMs - b.changedAtMs);
      return { changes, problems, cursor: { sinceMs, clients, scopes, seen: repeated } };
    },
  };
}

/** What the events of one read discard, and the names of clients and client scopes after them. */
class RealmChanges {
  readonly changes: CredentialChange[] = [];
  readonly problems: string[] = [];
  readonly clients: Record<string, string>;
  readonly scopes: Record<string, string>;
  readonly #admin: KeycloakAdmin;
  #scopesNow: Record<string, string> | undefined;

  constructor(admin: KeycloakAdmin, clients: KeycloakCursor['clients'], scopes: KeycloakCursor['clients']) {
    this.#admin = admin;
    this.clients = { ...clients };
    this.scopes = { ...scopes };
  }

  /** Notes an event about a subject. */
  async note(event: Row, [kind, internalId]: Subject, time: number): Promise<void> {
    if (kind === 'realm') return this.#noteRealm(event, time);
    if (kind === 'users') return this.#noteUser(event, internalId, time);
    if (kind === 'client-scopes') return this.#noteScope(event, internalId, time);
    return this.#noteClient(event, internalId, time);
  }

  async #noteRealm(event: Row, time: number): Promise<void> {
    if (event['resourcePath'] === 'logout-all') return this.#discardAll(time);
    const { notBefore = membersOf(await this.#admin.get('', true))['notBefore'] } = representationOf(event);
    if (typeof notBefore === 'number') {
      if (notBefore > 0) this.#discardAll(Math.min(notBefore * 1000, time));
    } else if (event['operationType'] === 'ACTION') this.#discardAll(time);
    else this.problems.push(NO_REALM);
  }

  async #noteUser(event: Row, userId: string, time: number): Promise<void> {
    try {
      this.#discard(await this.#disabledAccount(event, userId), time);
    } catch (error) {
      if (!(error instanceof ReportError)) throw error;
      this.problems.push(`a user was changed, who may be a service account: ${error.message}`);
    }
  }

  async #noteScope(event: Row, scopeId: string, time: number): Promise<void> {
    const { name = (this.#scopesNow ??= await listScopes(this.#admin))[scopeId] } = representationOf(event);
    const isDeleted = event['operationType'] === 'DELETE';
    if (event['operationType'] !== 'CREATE' && (isDeleted || name !== nameIn(this.scopes, scopeId))) {
      this.#discardAll(time);
    }
    if (typeof name === 'string' && !isDeleted) this.scopes[scopeId] = name;
  }

  async #noteClient(event: Row, internalId: string, time: number): Promise<void> {
    const before = nameIn(this.clients, internalId);
    const after = await this.#nameNow(event, internalId, before);
    if (after !== undefined) this.clients[internalId] = after;
    if (!discardsTokens(event)) return;
    // A client that was renamed has tokens under both ids.
    for (const clientId of new Set([before, after])) this.#discard(clientId, time);
    const shown = JSON.stringify(internalId);
    if (after === '*') this.problems.push(`the client ${shown} is called "*", which is not a client id: rename it`);
    if (!after) this.problems.push(`Keycloak no longer knows the client ${shown}, and its events do not name it`);
  }

  #discardAll(changedAtMs: number): void {
    for (const clientId of new Set(Object.values(this.clients))) this.#discard(clientId, changedAtMs);
  }

  #discard(clientId: string | undefined, changedAtMs: number): void {
    if (clientId !== undefined && clientId !== '*') this.changes.push({ clientId, changedAtMs });
  }

  /** The client id after an event: what the event says, or else Keycloak. Any update may have changed it. */
  async #nameNow(event: Row, internalId: string, known: string | undefined): Promise<string | undefined> {
    const { resourcePath, operationType } = event;
    const isOfClient = resourcePath === `clients/${internalId}`;
    // The realm may save representations, or not.
    const { clientId: said } = isOfClient ? representationOf(event) : {};
    if (typeof said === 'string') return said;
    if (known !== undefined && !(isOfClient && operationType === 'UPDATE')) return known;
    const client = await this.#admin.get(`clients/${encodeURIComponent(internalId)}`, true);
    return idsOf(client)[0]?.[1] ?? known;
  }

  /** The client whose service account an event has disabled. */
  async #disabledAccount(event: Row, userId: string): Promise<string | undefined> {
    const said = representationOf(event);
    const path = `users/${encodeURIComponent(userId)}`;
    const user = said['username'] === undefined ? membersOf(await this.#admin.get(path, true)) : said;
    const { username, enabled = said['enabled'] } = user;
    // Keycloak writes user names in lower case.
    const isAccount = (clientId: string): boolean => `service-account-${clientId}`.toLowerCase() === username;
    return enabled === false ? Object.values(this.clients).find(isAccount) : undefined;
  }
}

/** Names of the client scopes by internal id; none where they cannot be listed. */
async function listScopes(admin: KeycloakAdmin): Promise<Record<string, string>> {
  const list = await admin.get('client-scopes', true);
  const rows = Array.isArray(list) ? list.map(membersOf) : [];
  return Object.fromEntries(rows.map(({ id, name }) => [String(id), String(name)]));
}

function nameIn(names: Readonly<Record<string, string>>, id: string): string | undefined {
  return Object.hasOwn(names, id) ? names[id] : undefined;
}

type Subject = readonly [kind: string, internalId: string];

/** What an event is about, and its internal id: of mappers and the like of a scope or a user it is none of these. */
function subjectOf({ resourceType, resourcePath, operationType }: Row): Subject | undefined {
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

const NO_EVENTS = 'the realm saves no admin events: switch them on in Realm settings, Events, Admin events settings';
const NO_REALM =
  'the realm was changed, and its "not before" cannot be read: give the service account the role view-realm, or save representations';
