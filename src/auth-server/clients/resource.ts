import type { ClientRow } from '../storage/state';

/** A client credential as the API shows it. */
export interface ClientResource {
  readonly client_id: string;
  readonly description: string;
  /** Separated by spaces. */
  readonly scope: string;
  readonly disabled: boolean;
  readonly generation: number;
  readonly version: number;
  /** ISO 8601. */
  readonly created_at: string;
  /** ISO 8601. */
  readonly updated_at: string;
  /** Which secrets are live, newest first. Their text was shown once. */
  readonly secrets: readonly { readonly id: string; readonly created_at: string }[];
}

/** A client credential when it gets a secret. */
export interface ClientWithSecret extends ClientResource {
  readonly client_secret: string;
}

/** The client as the API shows it; of a secret only its id. */
export function toResource(row: ClientRow): ClientResource {
  return {
    client_id: row.clientId,
    description: row.description,
    scope: row.scopes.join(' '),
    disabled: row.disabled,
    generation: row.generation,
    version: row.version,
    created_at: isoTime(row.createdMs),
    updated_at: isoTime(row.updatedMs),
    secrets: row.secrets.map(({ id, createdMs }) => ({ id, created_at: isoTime(createdMs) })),
  };
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
