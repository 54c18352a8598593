import { createHash } from 'node:crypto';
import { AuthError } from '../../core/auth-error';
import { attempt } from '../../core/objects';
import type { Reason } from '../../core/reasons';
import { checkHeader, parseToken } from '../jws';
import { importKey } from '../keys/key-set';
import type { VerificationKey } from '../keys/key-set';
import { verifySignature } from '../signature';
import type { Algorithm } from '../signature';
import type { JsonObject } from '../strict-json';

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

type ProofKey = Pick<DpopProof, 'thumbprint'> & { readonly key: VerificationKey };

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

function readKey(header: JsonObject): ProofKey {
  const key = importKey(header['jwk'], MAX_MODULUS_BITS);
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

function readClaims(claims: JsonObject): Omit<DpopProof, 'thumbprint'> {
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
    nonce: 'nonce' in claims ? text(claims, 'nonce') : undefined,
  };
}

function timeMs(claims: JsonObject, name: string, absentMs?: number): number {
  const value = claims[name];
  if (value === undefined && absentMs !== undefined) return absentMs;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalidProof(`${name} is not a number`);
  return value * 1000;
}

function text(claims: JsonObject, name: string): string {
  const value = claims[name];
  if (typeof value === 'string' && value !== '') return value;
  throw invalidProof(`${name} is missing or not a string`);
}

/** Segments that a URL parser removes, but a router may not. */
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i;
/** What a URL parser drops, or reads as another character: `\` as `/`, for a router another path. */
const AMBIGUOUS = /[^\x21-\x7e]|[\\#]/;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/**
 * Whether `htu` of a proof is the URL of a request below the public URL of its app, without query and fragment (RFC 9449
 * section 4.3, check 9). The proof may have any spelling of that URL (RFC 3986 sections 6.2.2 and 6.2.3), but routers
 * match the characters that were sent: where the request encodes some without need, the proof has to do the same.
 */
export function isUrlOf(htu: string, baseUrl: string, target: string): boolean {
  const [path = ''] = target.split('?', 1);
  if (!path.startsWith('/') || DOT_SEGMENT.test(path) || AMBIGUOUS.test(path)) return false;
  const [named, requested] = [parse(htu), parse(baseUrl + path)];
  if (!named || !requested || named.origin !== requested.origin) return false;
  return named.path === requested.path || decodeUnreserved(named.path) === requested.path;
}

/** `undefined` for anything but an http(s) URL. */
function parse(url: string): { readonly origin: string; readonly path: string } | undefined {
  // Not canParse(): in Node 20 it refuses hosts with Latin-1 letters, once it has been optimized.
  const parsed = /^https?:\/\//i.test(url) ? attempt(() => new URL(url)) : undefined;
  if (!parsed) return undefined;
  const { origin, pathname } = parsed;
  return { origin, path: pathname.replace(/%[0-9a-f]{2}/gi, (encoded) => encoded.toUpperCase()) };
}

function decodeUnreserved(path: string): string {
  return path.replace(/%[0-9A-F]{2}/g, (encoded) => {
    const character = String.fromCharCode(parseInt(encoded.slice(1), 16));
    return UNRESERVED.test(character) ? character : encoded;
  });
}
