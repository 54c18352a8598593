import { nextNumber } from '../storage/state';
import type { ClientRow, StoredSecret } from '../storage/state';
import type { ChangeContext } from '../storage/store';
import { MAX_SECRETS } from './secrets';

/** What a client registers with. */
export type NewClient = Pick<ClientRow, 'clientId' | 'description' | 'scopes'>;

/** What can be changed about a client; absent members stay. */
export type ClientPatch = Partial<Pick<ClientRow, 'description' | 'scopes' | 'disabled'>>;

/** How a secret is rotated. */
export interface RotationOptions {
  /** The tokens issued so far stay valid. */
  readonly keepTokens: boolean;
  /** Every other secret ends now, not only the oldest. */
  readonly revokePrevious: boolean;
}

/** The row of a new client. Its numbers are above those of a deleted client of the same id. */
export function registered(
  { clientId, description, scopes }: NewClient,
  secret: StoredSecret,
  before: ClientRow | undefined,
  { nowMs, revision }: ChangeContext,
): ClientRow {
  return {
    clientId,
    description,
    scopes,
    disabled: false,
    deleted: false,
    generation: before ? nextNumber(before.generation, nowMs) : nowMs,
    version: (before?.version ?? 0) + 1,
    secrets: [secret],
    createdMs: nowMs,
    updatedMs: nowMs,
    movedAt: revision,
  };
}

/** The row with a patch applied: the same object when nothing changes. */
export function patched(row: ClientRow, patch: ClientPatch, context: ChangeContext): ClientRow {
  const next = { ...row, ...patch };
  const changed =
    next.description !== row.description || next.disabled !== row.disabled || !sameScopes(next.scopes, row.scopes);
  if (!changed) return row;
  return discardsTokens(row, next) ? withNewGeneration(next, context) : withNewVersion(next, context);
}

/** The row with a further secret; only the newest are kept. */
export function rotated(
  row: ClientRow,
  secret: StoredSecret,
  { keepTokens, revokePrevious }: RotationOptions,
  context: ChangeContext,
): ClientRow {
  const others = revokePrevious ? [] : row.secrets.slice(0, MAX_SECRETS - 1);
  const next = { ...row, secrets: [secret, ...others] };
  return keepTokens ? withNewVersion(next, context) : withNewGeneration(next, context);
}

/** The row with the next generation: every token issued so far is discarded. */
export function withNewGeneration(row: ClientRow, context: ChangeContext): ClientRow {
  const generation = nextNumber(row.generation, context.nowMs);
  return { ...withNewVersion(row, context), generation, movedAt: context.revision };
}

/** The row of a deleted client: its tokens are discarded. */
export function deleted(row: ClientRow, context: ChangeContext): ClientRow {
  const emptied = { ...row, description: '', scopes: [], secrets: [], disabled: true, deleted: true };
  return withNewGeneration(emptied, context);
}

/** Whether the Description is another text (white space and case count), a scope is taken away, or the client disabled. */
function discardsTokens(before: ClientRow, after: ClientRow): boolean {
  return (
    after.description !== before.description ||
    before.scopes.some((scope) => !after.scopes.includes(scope)) ||
    (after.disabled && !before.disabled)
  );
}

function withNewVersion(row: ClientRow, { nowMs }: ChangeContext): ClientRow {
  return { ...row, version: row.version + 1, updatedMs: nowMs };
}

/** In any order. */
function sameScopes(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((scope) => b.includes(scope));
}

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
    created_at: new Date(row.createdMs).toISOString(),
    updated_at: new Date(row.updatedMs).toISOString(),
    secrets: row.secrets.map(({ id, createdMs }) => ({ id, created_at: new Date(createdMs).toISOString() })),
  };
}
