import type { Dependencies } from 'tillgate';
import { attempt, clientAuthorization, isObject, readBody } from 'tillgate/internal';
import { ReportError } from './bridge';

/** Parsed JSON of an object. */
export type Row = Readonly<Record<string, unknown>>;

/** A realm, by its own URL and that of its admin API. */
interface Realm {
  readonly url: string;
  readonly admin: string;
}

interface Account {
  readonly realm: Realm;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly clock: () => number;
  readonly fetch: Dependencies['fetch'];
}

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 10_485_760;
const PAGE = 100;

/** Reads the admin API of a realm, with the token of a service account. */
export class KeycloakAdmin {
  readonly #account: Account;
  #token = { value: '', expiresAtMs: 0 };

  constructor(account: Account) {
    this.#account = account;
  }

  /** @param mayBeMissing - returns `undefined` for status 404 */
  async get(path: string, mayBeMissing = false): Promise<unknown> {
    const headers = { authorization: `Bearer ${await this.#accessToken()}` };
    return this.#exchange(`${this.#account.realm.admin}${path && '/'}${path}`, { headers }, mayBeMissing);
  }

  /** All pages of a list. */
  async list(path: string, filter = ''): Promise<Row[]> {
    const rows: Row[] = [];
    for (;;) {
      const page = await this.get(`${path}?${filter}first=${rows.length}&max=${PAGE}`);
      if (!Array.isArray(page)) throw new ReportError(`${path}: not a list`);
      rows.push(...(page as Row[]));
      if (page.length < PAGE) return rows;
    }
  }

  async #accessToken(): Promise<string> {
    const { clientId, clientSecret, clock } = this.#account;
    if (clock() < this.#token.expiresAtMs) return this.#token.value;
    const body = new URLSearchParams({ grant_type: 'client_credentials' });
    const headers = { authorization: clientAuthorization(clientId, clientSecret) };
    const url = `${this.#account.realm.url}/protocol/openid-connect/token`;
    const document = await this.#exchange(url, { method: 'POST', headers, body });
    const { access_token: value, expires_in: lifetime } = membersOf(document);
    if (typeof value !== 'string' || typeof lifetime !== 'number') {
      throw new ReportError('no access token in the response');
    }
    this.#token = { value, expiresAtMs: clock() + lifetime * 500 };
    return value;
  }

  async #exchange(target: string, init: RequestInit, mayBeMissing = false): Promise<unknown> {
    const shown = target.replace(/\?.*/, '');
    const { response, bytes } = await this.#send(target, init).catch((cause: unknown) => {
      const { code = 'no response' } = Object((cause as Error).cause) as { code?: string };
      throw new ReportError(`${shown} could not be fetched (${code})`, { cause });
    });
    const { status } = response;
    if (!response.ok) {
      await response.body?.cancel();
      if (status === 401) this.#token.expiresAtMs = 0;
      if (status === 404 && mayBeMissing) return undefined;
      const type = response.headers.get('content-type') ?? '';
      throw new ReportError(`${shown} responded with ${status}${adviceOn(status, type)}`);
    }
    if (!bytes) throw new ReportError(`${shown} responded with more than ${MAX_BYTES} bytes`);
    const value = parsed(bytes.toString());
    if (value === undefined) throw new ReportError(`${shown} did not respond with JSON`);
    return value;
  }

  /** The response, and its body where it succeeded and is not too large. */
  async #send(target: string, init: RequestInit): Promise<{ response: Response; bytes: Buffer | undefined }> {
    const send = this.#account.fetch ?? fetch;
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await send(target, { method: 'GET', body: null, ...init, redirect: 'manual', signal });
    const body = (response.body ?? []) as AsyncIterable<Uint8Array>;
    return { response, bytes: response.ok ? await readBody(body, MAX_BYTES) : undefined };
  }
}

/** The realm of a URL; `undefined` for another one. */
export function readRealm(given: unknown): Realm | undefined {
  const [, server, name] = /^(https?:\/\/.+)\/realms\/([^/]+)\/?$/.exec(String(given)) ?? [];
  return server === undefined || !URL.canParse(server)
    ? undefined
    : { url: `${server}/realms/${name}`, admin: `${server}/admin/realms/${name}` };
}

/** The value of a text of JSON; `undefined` for another text. */
export function parsed(text: string): unknown {
  return attempt(() => JSON.parse(text) as unknown);
}

/** The members of parsed JSON; none where it is not an object. */
export function membersOf(value: unknown): Row {
  return isObject(value) ? value : {};
}

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
