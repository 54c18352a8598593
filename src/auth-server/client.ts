import { MAX_SECRETS } from './secrets';
import { nextNumber } from './state';
import type { ClientRow, StoredSecret, Tombstone } from './state';
import type { Moment } from './store';

/** What a client registers with. */
export interface NewClient {
  readonly clientId: string;
  readonly description: string;
  readonly scopes: readonly string[];
}

/** What can be changed about a client; what is absent stays. */
export interface ClientPatch {
  readonly description?: string;
  readonly scopes?: readonly string[];
  readonly disabled?: boolean;
}

/** How a secret is rotated. */
export interface RotationOptions {
  /** The tokens issued so far stay good. */
  readonly keepTokens: boolean;
  /** Every other secret ends now, not only the oldest. */
  readonly revokePrevious: boolean;
}

/** The row of a new client; above everything that a deleted one of the same id ever had. */
export function registered(
  { clientId, description, scopes }: NewClient,
  secret: StoredSecret,
  before: Tombstone | undefined,
  { nowMs, revision }: Moment,
): ClientRow {
  return {
    clientId,
    description,
    scopes,
    disabled: false,
    generation: before ? nextNumber(before.generation, nowMs) : nowMs,
    version: (before?.version ?? 0) + 1,
    secrets: [secret],
    createdMs: nowMs,
    updatedMs: nowMs,
    movedAt: revision,
  };
}

/** The row with a patch laid over it: the same object when nothing changes. */
export function patched(row: ClientRow, patch: ClientPatch, moment: Moment): ClientRow {
  const next = { ...row, ...patch };
  const changed =
    next.description !== row.description || next.disabled !== row.disabled || !sameScopes(next.scopes, row.scopes);
  if (!changed) return row;
  return discardsTokens(row, next) ? movedOn(next, moment) : touched(next, moment);
}

/** The row with a further secret; at most two are kept, the newest ones. */
export function rotated(
  row: ClientRow,
  secret: StoredSecret,
  { keepTokens, revokePrevious }: RotationOptions,
  moment: Moment,
): ClientRow {
  const others = revokePrevious ? [] : row.secrets.slice(0, MAX_SECRETS - 1);
  const next = { ...row, secrets: [secret, ...others] };
  return keepTokens ? touched(next, moment) : movedOn(next, moment);
}

/** The row with the next generation: every token issued so far is discarded. */
export function movedOn(row: ClientRow, moment: Moment): ClientRow {
  const generation = nextNumber(row.generation, moment.nowMs);
  return { ...touched(row, moment), generation, movedAt: moment.revision };
}

/** What a deleted client leaves: its tokens die with it. */
export function buried(row: ClientRow, moment: Moment): Tombstone {
  const { clientId, generation, version, movedAt } = movedOn(row, moment);
  return { clientId, generation, version, movedAt };
}

/**
 * Whether a change discards the tokens issued before: the Description is another text (white space and case count), a
 * scope is taken away, or the client is disabled.
 */
function discardsTokens(before: ClientRow, after: ClientRow): boolean {
  return (
    after.description !== before.description ||
    before.scopes.some((scope) => !after.scopes.includes(scope)) ||
    (after.disabled && !before.disabled)
  );
}

function touched(row: ClientRow, { nowMs }: Moment): ClientRow {
  return { ...row, version: row.version + 1, updatedMs: nowMs };
}

/** Their order means nothing. */
function sameScopes(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((scope) => b.includes(scope));
}
