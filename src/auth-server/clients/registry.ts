import type { Publisher } from '../generations/publisher';
import { RefusedRequest } from '../problem';
import type { ClientRow, State } from '../storage/state';
import type { Change, ChangeContext, Store } from '../storage/store';
import { deleted, patched, registered, rotated, withNewGeneration } from './client';
import type { ClientPatch, NewClient, RotationOptions } from './client';
import { newSecret } from './secrets';

/** Throws to refuse a change of a row that is not the one the caller has seen; runs together with the change. */
export type Precondition = (row: ClientRow) => void;

/** A client with a secret, whose text is known only now. */
export interface WithSecret {
  readonly row: ClientRow;
  readonly secret: string;
}

/** A client before and after a change; the same object when nothing changed. */
export interface Patched {
  readonly before: ClientRow;
  readonly after: ClientRow;
}

/**
 * The client credentials. Every change resolves once it is on disk and published.
 *
 * All methods throw RefusedRequest: 404 for an unknown client, 409 for a taken id.
 */
export interface Registry {
  list(): ClientRow[];
  get(clientId: string): ClientRow;
  register(client: NewClient): Promise<WithSecret>;
  patch(clientId: string, patch: ClientPatch, precondition: Precondition): Promise<Patched>;
  rotate(clientId: string, options: RotationOptions, precondition: Precondition): Promise<WithSecret>;
  revoke(clientId: string, precondition: Precondition): Promise<ClientRow>;
  remove(clientId: string, precondition: Precondition): Promise<void>;
}

/** Makes the registry over a store. */
export function createRegistry(store: Store, publisher: Publisher): Registry {
  /** Edits the row as it is when the change is applied. */
  async function change<Value>(
    clientId: string,
    precondition: Precondition,
    edit: (row: ClientRow, context: ChangeContext) => Change<Value>,
  ): Promise<Value> {
    const value = await store.change((state, context) => {
      const row = requireClient(state, clientId);
      precondition(row);
      return edit(row, context);
    });
    await publish(clientId);
    return value;
  }

  async function publish(clientId: string): Promise<void> {
    const { clients, tombstones } = store.state;
    const floor = clients.get(clientId) ?? tombstones.get(clientId);
    if (floor) await publisher.publish([[clientId, floor.generation]]);
  }

  return {
    list: () => [...store.state.clients.values()],
    get: (clientId) => requireClient(store.state, clientId),

    async register(client) {
      const registration = await store.change((state, context) => {
        if (state.clients.has(client.clientId)) throw clientExists(client.clientId);
        const { text, stored } = newSecret(context.nowMs);
        const row = registered(client, stored, state.tombstones.get(client.clientId), context);
        return { put: row, value: { row, secret: text } };
      });
      await publish(client.clientId);
      return registration;
    },

    patch: (clientId, patch, precondition) =>
      change(clientId, precondition, (before, context) => {
        const after = patched(before, patch, context);
        return { ...(after !== before && { put: after }), value: { before, after } };
      }),

    rotate: (clientId, options, precondition) =>
      change(clientId, precondition, (before, context) => {
        const { text, stored } = newSecret(context.nowMs);
        const row = rotated(before, stored, options, context);
        return { put: row, value: { row, secret: text } };
      }),

    revoke: (clientId, precondition) =>
      change(clientId, precondition, (before, context) => {
        const row = withNewGeneration(before, context);
        return { put: row, value: row };
      }),

    remove: (clientId, precondition) =>
      change(clientId, precondition, (row, context) => ({ tombstone: deleted(row, context), value: undefined })),
  };
}

function requireClient({ clients }: State, clientId: string): ClientRow {
  const row = clients.get(clientId);
  if (row) return row;
  throw new RefusedRequest({
    status: 404,
    code: 'not_found',
    detail: 'No client has this id: GET /clients lists the registered ones, POST /clients registers one.',
  });
}

function clientExists(clientId: string): RefusedRequest {
  return new RefusedRequest({
    status: 409,
    code: 'client_exists',
    detail:
      `The client id ${JSON.stringify(clientId)} is taken: choose another one, or change the client that has it with ` +
      `PATCH /clients/${encodeURIComponent(clientId)}.`,
  });
}
