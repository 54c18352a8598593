import type { JsonWebKey } from 'node:crypto';

/** Algorithms that the token server signs with (RFC 7518 section 3.1). */
export type SigningAlgorithm = 'RS256' | 'ES256';

/** A client secret as it is kept: the text itself was shown once and is not known any more. */
export interface StoredSecret {
  readonly id: string;
  /** SHA-256 in hexadecimal. */
  readonly hash: string;
  readonly createdMs: number;
}

/** A client credential. Rows are never changed: every change makes a new one. */
export interface ClientRow {
  readonly clientId: string;
  readonly description: string;
  readonly scopes: readonly string[];
  readonly disabled: boolean;
  /** Tokens that carry a lower number are discarded. */
  readonly generation: number;
  /** Moves with every change; the entity tag. */
  readonly version: number;
  /** Newest first. */
  readonly secrets: readonly StoredSecret[];
  readonly createdMs: number;
  readonly updatedMs: number;
  /** Revision of the state at which the generation moved last. */
  readonly movedAt: number;
}

/** What is left of a deleted client credential, so that its id never gets an old number again. */
export interface Tombstone {
  readonly clientId: string;
  readonly generation: number;
  readonly version: number;
  readonly movedAt: number;
}

/** The key that signs. */
export interface SigningKey {
  readonly kid: string;
  readonly alg: SigningAlgorithm;
  readonly privateJwk: JsonWebKey;
}

/** A key that signs no more; published until the last token under it has expired. Its private half is gone. */
export interface RetiredKey {
  readonly kid: string;
  readonly alg: SigningAlgorithm;
  readonly publicJwk: JsonWebKey;
  readonly publishedUntilMs: number;
}

/** All keys of the token server. */
export interface KeyRing {
  readonly signing: SigningKey;
  readonly retired: readonly RetiredKey[];
}

/** Everything that the token server keeps, at one moment. Never changed: every change makes a new one. */
export interface State {
  /**
   * Moves with every change: `max(previous + 1, now in ms)`. At once the entity tag of the generations feed, the time
   * of a change, and the event id of the stream; a restored older state can never repeat a number.
   */
  readonly revision: number;
  readonly clients: ReadonlyMap<string, ClientRow>;
  readonly tombstones: ReadonlyMap<string, Tombstone>;
  readonly keys: KeyRing;
}

/** The smallest number above `previous` that is no earlier than now: the rule of generations and of revisions. */
export function nextNumber(previous: number, nowMs: number): number {
  return Math.max(previous + 1, nowMs);
}
