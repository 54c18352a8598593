import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { StoredSecret } from '../storage/state';

/** With two live secrets, a fleet can change over without a gap. */
export const MAX_SECRETS = 2;

/** Compares two digests of equal length in constant time. */
export type CompareDigests = (a: Buffer, b: Buffer) => boolean;

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
  compare: CompareDigests = timingSafeEqual,
): boolean {
  const actual = digest(presented);
  const matches = Array.from({ length: MAX_SECRETS }, (_, index) => {
    const secret = secrets[index];
    return compare(secret ? Buffer.from(secret.hash, 'hex') : NO_SECRET, actual) && secret !== undefined;
  });
  return matches.includes(true);
}

/** Whether two texts are equal, in constant time for any lengths. */
export function equalTexts(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
