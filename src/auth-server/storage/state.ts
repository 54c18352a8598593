import type { JsonWebKey } from 'node:crypto';

/** Algorithms that the token server signs with (RFC 7518 section 3.1). */
export type SigningAlgorithm = 'RS256' | 'ES256';

/** A client secret as it is kept; its text was shown once and is not kept. */
export interface StoredSecret {
  readonly id: string;
  /** SHA-256 in hexadecimal. */
  readonly hash: string;
  readonly createdMs: number;
}

/** A client credential. Rows are immutable: every change makes a new one. */
export interface ClientRow {
  readonly clientId: string;
  readonly description: string;
  readonly scopes: readonly string[];
  readonly disabled: boolean;
  /** A deleted client keeps its row, disabled and empty, so that its id never gets an old generation again. */
  readonly deleted: boolean;
  /** Tokens that carry a lower number are discarded. Not before the time of its last change, in ms. */
  readonly generation: number;
  /** Increases with every change; the entity tag. */
  readonly version: number;
  /** Newest first. */
  readonly secrets: readonly StoredSecret[];
  readonly createdMs: number;
  readonly updatedMs: number;
}

/** A key that signs, or has signed. */
export interface StoredKey {
  readonly kid: string;
  readonly alg: SigningAlgorithm;
  /** Without private members once the key is retired. */
  readonly jwk: JsonWebKey;
  /** When the last token of a retired key has expired. */
  readonly publishedUntilMs: number;
}

/** All keys of the token server. */
export interface KeyRing {
  readonly signing: StoredKey;
  readonly retired: readonly StoredKey[];
}

/** Everything that the token server keeps. Immutable: every change makes a new one. */
export interface State {
  /** By client id, deleted ones too. */
  readonly clients: ReadonlyMap<string, ClientRow>;
  readonly keys: KeyRing;
}

/** The next generation: above `previous`, and not before now. */
export function nextNumber(previous: number, nowMs: number): number {
  return Math.max(previous + 1, nowMs);
}
