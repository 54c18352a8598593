import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ClientRow, State } from './store';

type StoredSecret = ClientRow['secrets'][number];

/** The row of a new client. Its numbers are above those of a deleted client of the same id. */
export function registered(
  client: Pick<ClientRow, 'clientId' | 'description' | 'scopes'>,
  secret: StoredSecret,
  clients: State['clients'],
  nowMs: number,
): ClientRow {
  const generation = clients.get(client.clientId)?.generation ?? 0;
  const created = { ...client, generation, secrets: [secret], createdMs: nowMs, updatedMs: nowMs };
  return withNewGeneration({ ...created, disabled: false, deleted: false }, nowMs);
}

/** The row with a patch applied: the same object when nothing changes. */
export function patched(
  row: ClientRow,
  patch: Partial<Pick<ClientRow, 'description' | 'scopes' | 'disabled'>>,
  nowMs: number,
): ClientRow {
  const next = { ...row, ...patch };
  const changed =
    next.description !== row.description || next.disabled !== row.disabled || !sameScopes(next.scopes, row.scopes);
  if (!changed) return row;
  return discardsTokens(row, next) ? withNewGeneration(next, nowMs) : { ...next, updatedMs: nowMs };
}

/**
 * The row with a further secret; only the newest are kept. With `keepTokens` the tokens issued so far stay valid; with
 * `revokePrevious` every other secret ends now, not only the oldest.
 */
export function rotated(
  row: ClientRow,
  secret: StoredSecret,
  { keepTokens, revokePrevious }: Readonly<Record<'keepTokens' | 'revokePrevious', boolean>>,
  nowMs: number,
): ClientRow {
  const others = revokePrevious ? [] : row.secrets.slice(0, MAX_SECRETS - 1);
  const next = { ...row, secrets: [secret, ...others] };
  return keepTokens ? { ...next, updatedMs: nowMs } : withNewGeneration(next, nowMs);
}

/** The row with the next generation: every token issued so far is discarded. */
export function withNewGeneration(row: ClientRow, nowMs: number): ClientRow {
  return { ...row, generation: Math.max(row.generation + 1, nowMs), updatedMs: nowMs };
}

/** The row of a deleted client: its tokens are discarded. */
export function deleted(row: ClientRow, nowMs: number): ClientRow {
  const emptied = { ...row, description: '', scopes: [], secrets: [], disabled: true, deleted: true };
  return withNewGeneration(emptied, nowMs);
}

/** Whether the Description is another text (white space and case count), a scope is taken away, or the client disabled. */
function discardsTokens(before: ClientRow, after: ClientRow): boolean {
  return (
    after.description !== before.description ||
    before.scopes.some((scope) => !after.scopes.includes(scope)) ||
    (after.disabled && !before.disabled)
  );
}

/** In any order. */
function sameScopes(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((scope) => b.includes(scope));
}

/** With two live secrets, a fleet can change over without a gap. */
const MAX_SECRETS = 2;

const NO_SECRET = Buffer.alloc(32);

/** Makes a secret of 256 random bits, whose text is not kept. It cannot be guessed, so a fast hash is enough. */
export function newSecret(nowMs: number): { readonly text: string; readonly stored: StoredSecret } {
  const text = randomBytes(32).toString('base64url');
  const id = randomBytes(6).toString('base64url');
  return { text, stored: { id, hash: digest(text).toString('hex'), createdMs: nowMs } };
}

/** Whether `presented` is one of the secrets; takes as long for an unknown client, which has none. */
export function matchesSecret(
  secrets: readonly StoredSecret[],
  presented: string,
  compare: (a: Buffer, b: Buffer) => boolean = timingSafeEqual,
): boolean {
  const actual = digest(presented);
  const matches = Array.from({ length: MAX_SECRETS }, (_, index) => {
    const secret = secrets[index];
    return compare(secret ? Buffer.from(secret.hash, 'hex') : NO_SECRET, actual) && secret !== undefined;
  });
  return matches.includes(true);
}

/** Of equal length for every text, so that two can be compared in constant time. */
export function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
