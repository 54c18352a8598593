import type { ClientResource } from '../auth-server/index';

const MAX_ENTRIES = 50;

/** What has become of the client credentials since the console was opened. */
export class Timelines {
  readonly #list: () => readonly ClientResource[];
  readonly #clock: () => number;
  /** What began each generation of a client, and when (ISO 8601); newest first. */
  readonly #entries = new Map<string, readonly object[]>();
  #known: ReadonlyMap<string, ClientResource> | undefined;

  constructor(list: () => readonly ClientResource[], clock: () => number) {
    this.#list = list;
    this.#clock = clock;
  }

  of(clientId: string): readonly object[] {
    return this.#entries.get(clientId) ?? [];
  }

  /** Compares the clients with those of the last call. */
  update(): void {
    const clients = new Map(this.#list().map((client) => [client.client_id, client]));
    for (const client of clients.values()) {
      const before = this.#known?.get(client.client_id);
      if (before?.generation === client.generation) continue;
      const { generation, created_at: at } = client;
      const registered = { generation: Date.parse(at), at, cause: 'registered' };
      const earlier = before ? this.of(client.client_id) : [registered];
      const cause = before ? causeOf(before, client) : 'changed before the console was opened';
      const isChanged = before !== undefined || generation !== registered.generation;
      const changed = { generation, at: new Date(before ? this.#clock() : generation).toISOString(), cause };
      this.#entries.set(client.client_id, [...(isChanged ? [changed] : []), ...earlier].slice(0, MAX_ENTRIES));
    }
    for (const clientId of this.#entries.keys()) if (!clients.has(clientId)) this.#entries.delete(clientId);
    this.#known = clients;
  }
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
