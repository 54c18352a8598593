import { shoot } from '../../test/all/support/load';
import type { Outcome, Shot } from '../../test/all/support/load';

/** What the token server has confirmed about one client: all of it must be true for ever. */
interface Entry {
  readonly clientId: string;
  readonly secret: string;
  generation: number;
  /** Tokens that an confirmed change has discarded. */
  readonly dead: string[];
  /** The latest token, as long as no further change was asked for. */
  live: string | undefined;
  removed: boolean;
  /** A change that was asked for and not confirmed may have happened or not. */
  pending: boolean;
}

/** How the book and the server disagree. */
export interface Disagreements {
  lost: number;
  revived: number;
}

/** Keeps book of what a token server responses while it registers and changes clients. */
export class KillLedger {
  readonly entries: Entry[] = [];
  /** Registrations, changes and removals that were confirmed. */
  confirmed = 0;
  #serial = 0;

  /** Registers and changes, until the server is gone. */
  async work(url: string): Promise<void> {
    for (let alive = true; alive;) alive = await this.#oneClient(url);
  }

  /** Holds every entry since `from` against the server. */
  async check(url: string, from: number): Promise<Disagreements> {
    const found: Disagreements = { lost: 0, revived: 0 };
    for (const entry of this.entries.slice(from)) {
      const known = await get(url, `/clients/${entry.clientId}`);
      if (entry.removed || (entry.pending && known.status === 404)) {
        // A removal that was confirmed is final; one that was not may have happened.
        if (known.status !== 404) found.revived++;
        continue;
      }
      const { generation = 0 } = known.status === 200 ? (JSON.parse(known.body) as { generation: number }) : {};
      if (known.status !== 200 || generation < entry.generation) found.lost++;
      else await this.#checkTokens(url, entry, found);
    }
    return found;
  }

  async #checkTokens(url: string, entry: Entry, found: Disagreements): Promise<void> {
    if ((await shoot(form(url, '/connect/token', entry, { scope: 'orders:read' }))).status !== 200) found.lost++;
    for (const token of entry.dead) if (await isActive(url, entry, token)) found.revived++;
    if (!entry.pending && entry.live && !(await isActive(url, entry, entry.live))) found.lost++;
  }

  /** `false` when the server did not response any more. */
  async #oneClient(url: string): Promise<boolean> {
    const clientId = `client-${this.#serial++}`;
    const created = await json(url, 'POST', '/clients', { client_id: clientId, scope: 'orders:read' });
    if (created.status !== 201) return false;
    const { client_secret: secret, generation } = JSON.parse(created.body) as Registered;
    const entry: Entry = { clientId, secret, generation, dead: [], live: undefined, removed: false, pending: false };
    this.entries.push(entry);
    this.confirmed++;
    const first = await shoot(form(url, '/connect/token', entry, { scope: 'orders:read' }));
    if (first.status !== 200) return false;
    entry.live = (JSON.parse(first.body) as { access_token: string }).access_token;
    for (const change of ['one', 'two']) if (!(await this.#describe(url, entry, change))) return false;
    return this.#serial % 4 === 0 ? this.#remove(url, entry) : true;
  }

  async #describe(url: string, entry: Entry, description: string): Promise<boolean> {
    entry.pending = true;
    const changed = await json(url, 'PATCH', `/clients/${entry.clientId}`, { description });
    if (changed.status !== 200) return false;
    const { generation, token } = JSON.parse(changed.body) as Registered & { token: { access_token: string } };
    if (entry.live) entry.dead.push(entry.live);
    Object.assign(entry, { generation, live: token.access_token, pending: false });
    this.confirmed++;
    return true;
  }

  async #remove(url: string, entry: Entry): Promise<boolean> {
    entry.pending = true;
    const gone = await shoot({ url: `${url}/clients/${entry.clientId}`, method: 'DELETE' });
    if (gone.status !== 204) return false;
    Object.assign(entry, { removed: true, pending: false });
    this.confirmed++;
    return true;
  }
}

interface Registered {
  readonly client_secret: string;
  readonly generation: number;
}

async function isActive(url: string, entry: Entry, token: string): Promise<boolean> {
  const { body } = await shoot(form(url, '/connect/introspect', entry, { token }));
  return (JSON.parse(body) as { active: boolean }).active;
}

function get(url: string, path: string): Promise<Outcome> {
  return shoot({ url: url + path });
}

function json(url: string, method: string, path: string, body: object): Promise<Outcome> {
  return shoot({
    url: url + path,
    method,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
}

function form(url: string, path: string, { clientId, secret }: Entry, members: Readonly<Record<string, string>>): Shot {
  const fields = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret, ...members };
  return {
    url: url + path,
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(fields).toString(),
  };
}
