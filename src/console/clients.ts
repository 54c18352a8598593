/** A client credential as the token server shows it. */
export interface ConsoleClient {
  readonly client_id: string;
  readonly description: string;
  /** Separated by spaces. */
  readonly scope: string;
  readonly disabled: boolean;
  readonly generation: number;
  readonly secrets: readonly { readonly id: string }[];
}

/** One generation of a client credential. */
export interface TimelineEntry {
  readonly generation: number;
  /** ISO 8601. */
  readonly at: string;
  /** What began it. */
  readonly cause: string;
}

/** What has become of the client credentials since the console was opened. */
export interface Timelines {
  /** Compares the clients with those of the last call. */
  update(): void;
  /** Newest first. */
  of(clientId: string): readonly TimelineEntry[];
}

const MAX_ENTRIES = 50;

/** Makes the timelines of the clients that `list` returns. */
export function timelines(list: () => readonly ConsoleClient[], clock: () => number): Timelines {
  const entries = new Map<string, TimelineEntry[]>();
  let known: ReadonlyMap<string, ConsoleClient> | undefined;

  function update(): void {
    const clients = new Map(list().map((client) => [client.client_id, client]));
    for (const client of clients.values()) {
      const before = known?.get(client.client_id);
      if (before?.generation === client.generation) continue;
      const cause = before ? causeOf(before, client) : known ? 'registered' : 'known when the console was opened';
      const entry = { generation: client.generation, at: new Date(clock()).toISOString(), cause };
      entries.set(client.client_id, [entry, ...(entries.get(client.client_id) ?? [])].slice(0, MAX_ENTRIES));
    }
    for (const clientId of entries.keys()) if (!clients.has(clientId)) entries.delete(clientId);
    known = clients;
  }

  return { update, of: (clientId) => entries.get(clientId) ?? [] };
}

function causeOf(before: ConsoleClient, after: ConsoleClient): string {
  const scopes = after.scope.split(' ');
  const removed = before.scope.split(' ').filter((scope) => !scopes.includes(scope));
  if (after.description !== before.description) return 'Description changed';
  if (removed.length > 0) return `scopes removed: ${removed.join(' ')}`;
  if (after.disabled && !before.disabled) return 'disabled';
  if (after.secrets[0]?.id !== before.secrets[0]?.id) return 'secret rotated';
  return 'tokens revoked';
}
