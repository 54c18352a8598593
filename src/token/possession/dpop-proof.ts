import { createHash } from 'node:crypto';
import { AuthError } from '../../core/auth-error';
import { isObject, ownValue } from '../../core/objects';
import type { Reason } from '../../core/reasons';
import type { Algorithm } from '../algorithms';
import { checkHeader, parseToken } from '../jws';
import { importJwk, toVerificationKey, unsuitable } from '../keys/jwk';
import type { VerificationKey } from '../keys/jwk';
import { verifySignature } from '../signature';

/** A proof whose signature and form are good; its claims are not compared with the request yet. */
export interface DpopProof {
  /** SHA-256 thumbprint of its key (RFC 7638). */
  readonly thumbprint: string;
  readonly id: string;
  readonly method: string;
  readonly url: string;
  readonly issuedAtMs: number;
  /** `nbf` and `exp` (RFC 7519 section 4.1), which a proof need not have. */
  readonly notBeforeMs: number;
  readonly expiresAtMs: number;
  readonly tokenHash: string;
  readonly nonce: string | undefined;
}

interface ProofKey {
  readonly key: VerificationKey;
  readonly thumbprint: string;
}

const PROOF_TYPES: ReadonlySet<string> = new Set(['dpop+jwt']);
/** Refusals that are passed on as they are; all others become `invalid_dpop_proof`. */
const OWN_REASONS: readonly Reason[] = ['invalid_dpop_proof', 'wrong_binding'];
const MAX_ID_LENGTH = 512;
/** Anyone whose issuer binds tokens to its key chooses that key, which must cost less than those of issuers. */
const MAX_MODULUS_BITS = 4_096;
/** Members of a thumbprint, in their order (RFC 7638 section 3.2, RFC 8037 section 2). */
const THUMBPRINT_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
};
/** Keys by the header that contains them: all proofs of a client have the same one. */
const keys = new WeakMap<object, ProofKey>();

/**
 * Reads a DPoP proof and verifies its signature with the key that it contains (RFC 9449 section 4.3, checks 2 to 7). The
 * key has to be the one that the token is bound to, so that no caller makes us compute with a key of its choice.
 *
 * @param bound - thumbprint of that key
 * @throws AuthError `invalid_dpop_proof` or `wrong_binding`
 */
export function verifyProof(raw: string, algorithms: ReadonlySet<Algorithm>, bound: unknown): DpopProof {
  try {
    const proof = parseToken(raw);
    const { algorithm } = checkHeader(proof.header, { algorithms, types: PROOF_TYPES });
    const { key, thumbprint } = keys.get(proof.header) ?? readKey(proof.header);
    if (thumbprint !== bound) throw new AuthError('wrong_binding');
    if (!key.algorithms.includes(algorithm)) throw invalidProof('alg does not fit the key');
    verifySignature(proof, key.key, algorithm);
    return { thumbprint, ...readClaims(proof.claims) };
  } catch (error) {
    if (!(error instanceof AuthError) || OWN_REASONS.includes(error.reason)) throw error;
    throw new AuthError('invalid_dpop_proof', {
      privateDetail: error.privateDetail ?? error.reason,
      cause: error.cause,
    });
  }
}

/** Hash of an access token as `ath` has it (RFC 9449 section 4.2). */
export function accessTokenHash(token: string): string {
  return createHash('sha256').update(token, 'latin1').digest('base64url');
}

export function invalidProof(privateDetail: string): AuthError {
  return new AuthError('invalid_dpop_proof', { privateDetail });
}

function readKey(header: Readonly<Record<string, unknown>>): ProofKey {
  const jwk = ownValue(header, 'jwk');
  const fault = unsuitable(jwk);
  if (fault !== undefined || !isObject(jwk)) throw invalidProof(`jwk: ${fault}`);
  const imported = importJwk(jwk);
  const key = imported ? toVerificationKey(jwk, imported, MAX_MODULUS_BITS) : 'it is not a key';
  if (typeof key === 'string') throw invalidProof(`jwk: ${key}`);
  const known = { key, thumbprint: thumbprintOf(key) };
  keys.set(header, known);
  return known;
}

/** Of the key as Node exports it: another spelling of its numbers is the same key. */
function thumbprintOf({ key }: VerificationKey): string {
  const jwk = key.export({ format: 'jwk' });
  const members = (THUMBPRINT_MEMBERS[jwk.kty ?? ''] ?? []).map((name) => [name, jwk[name]]);
  return createHash('sha256')
    .update(JSON.stringify(Object.fromEntries(members)))
    .digest('base64url');
}

function readClaims(claims: Readonly<Record<string, unknown>>): Omit<DpopProof, 'thumbprint'> {
  const id = text(claims, 'jti');
  if (id.length > MAX_ID_LENGTH) throw invalidProof(`jti is longer than ${MAX_ID_LENGTH} characters`);
  return {
    id,
    method: text(claims, 'htm'),
    url: text(claims, 'htu'),
    issuedAtMs: timeMs(claims, 'iat'),
    notBeforeMs: timeMs(claims, 'nbf', -Infinity),
    expiresAtMs: timeMs(claims, 'exp', Infinity),
    tokenHash: text(claims, 'ath'),
    nonce: Object.hasOwn(claims, 'nonce') ? text(claims, 'nonce') : undefined,
  };
}

function timeMs(claims: Readonly<Record<string, unknown>>, name: string, absentMs?: number): number {
  const value = ownValue(claims, name);
  if (value === undefined && absentMs !== undefined) return absentMs;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalidProof(`${name} is not a number`);
  return value * 1000;
}

function text(claims: Readonly<Record<string, unknown>>, name: string): string {
  const value = ownValue(claims, name);
  if (typeof value === 'string' && value !== '') return value;
  throw invalidProof(`${name} is missing or not a string`);
}
