import { constants, sign, verify } from 'node:crypto';
import type { KeyObject, VerifyKeyObjectInput } from 'node:crypto';
import { promisify } from 'node:util';
import { AuthError } from '../core/errors';
import { attempt, ownMembers } from '../core/objects';
import { isList } from '../core/options';

/** The parts of a token that its signature is verified with. */
export interface SignedText {
  /** The whole token. */
  readonly raw: string;
  readonly signingInput: string;
  readonly signature: Buffer;
}

/** How signatures of an algorithm are made; names as OpenSSL has them. */
interface Scheme {
  readonly keyType: 'rsa' | 'ec' | 'ed25519';
  /** `null`: Ed25519 hashes by itself (RFC 8037 section 3.1). */
  readonly hash: string | null;
  /** RFC 7518 section 3.4: each ECDSA algorithm goes with exactly one curve. */
  readonly curve: string | undefined;
  /** Length of a signature in bytes; of RSA that of the modulus. */
  readonly bytes: number | undefined;
  readonly parameters: object;
}

/** RSASSA-PSS, the salt as long as the hash (RFC 7518 section 3.5). */
const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };

const ED25519: Scheme = { keyType: 'ed25519', hash: null, curve: undefined, bytes: 64, parameters: {} };

/**
 * The signature algorithms that can be accepted (RFC 7518 section 3.1, RFC 8037, RFC 9864): a token cannot select anything
 * else. No HMAC: a key set has public keys only.
 */
const SCHEMES = {
  RS256: rsa('sha256'),
  RS384: rsa('sha384'),
  RS512: rsa('sha512'),
  PS256: rsa('sha256', PSS),
  PS384: rsa('sha384', PSS),
  PS512: rsa('sha512', PSS),
  ES256: ecdsa('sha256', 'prime256v1', 64),
  ES384: ecdsa('sha384', 'secp384r1', 96),
  ES512: ecdsa('sha512', 'secp521r1', 132),
  EdDSA: ED25519,
  // RFC 9864 section 2.2: with the only curve that is accepted here, both names mean the same signature.
  Ed25519: ED25519,
} satisfies Record<string, Scheme>;

/** One accepted signature algorithm. */
export type Algorithm = keyof typeof SCHEMES;

/** All of them. */
export const ALGORITHMS = Object.keys(SCHEMES) as readonly Algorithm[];

function rsa(hash: string, parameters = {}): Scheme {
  return { keyType: 'rsa', hash, curve: undefined, bytes: undefined, parameters };
}

/** r and s concatenated, not DER (RFC 7518 section 3.4). */
function ecdsa(hash: string, curve: string, bytes: number): Scheme {
  return { keyType: 'ec', hash, curve, bytes, parameters: { dsaEncoding: 'ieee-p1363' } };
}

/**
 * Reads a list of at least one algorithm, with all names of each; `undefined` for anything else. RFC 8725 section 3.2:
 * any caller can sign an HMAC with a published key.
 */
export function readAlgorithms(value: unknown): readonly Algorithm[] | undefined {
  const known: readonly unknown[] = ALGORITHMS;
  if (!isList(value) || value.length === 0 || !value.every((one) => known.includes(one))) return undefined;
  const named = value as readonly Algorithm[];
  return [...new Set(named.flatMap((one) => ALGORITHMS.filter((other) => SCHEMES[other] === SCHEMES[one])))];
}

/** Whether a key can verify an algorithm at all: its type, its curve, and for RSA-PSS keys the parameters they are bound to. */
export function isCompatible({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject, algorithm: Algorithm): boolean {
  const { keyType, hash, curve, parameters } = SCHEMES[algorithm];
  if (asymmetricKeyType === 'rsa-pss') {
    return parameters === PSS && (asymmetricKeyDetails?.hashAlgorithm ?? hash) === hash;
  }
  return asymmetricKeyType === keyType && (curve === undefined || asymmetricKeyDetails?.namedCurve === curve);
}

/** How long verifications take on this machine, in us, by kind of key. */
const costs = new Map<string, number>();
/**
 * How often a verification is timed. The fastest one counts: the first ones are slow, and a process can lose its processor in
 * between. Expensive kinds are timed less often, because the start waits for it.
 */
const MEASUREMENTS = { least: 3, most: 20, longestMs: 4 };

/**
 * How long a verification with a key takes on this machine, in us: measured with the first key of each curve, or of each
 * length of modulus and exponent, on the event loop.
 *
 * @param algorithms - those that the key can verify
 */
export function verificationCostUs(key: KeyObject, [algorithm = 'RS256']: readonly Algorithm[]): number {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  // Rounded, so that keys which clients choose are of few kinds.
  const kind = `${SCHEMES[algorithm].curve ?? key.asymmetricKeyType} ${modulusLength >> 10} ${publicExponent.toString(2).length}`;
  const known = costs.get(kind);
  if (known !== undefined) return known;
  // In the range of every kind of signature, so that nothing is refused before it is computed.
  const signature = Buffer.alloc(SCHEMES[algorithm].bytes ?? Math.ceil(modulusLength / 8), 1);
  const { least, most, longestMs } = MEASUREMENTS;
  let fastestMs = Infinity;
  let spentMs = 0;
  for (let done = 0; done < least || (done < most && spentMs < longestMs); done++) {
    const startedMs = performance.now();
    attempt(() => verifySignature({ raw: '', signingInput: '', signature }, key, algorithm));
    const ms = performance.now() - startedMs;
    fastestMs = Math.min(fastestMs, ms);
    spentMs += ms;
  }
  costs.set(kind, fastestMs * 1000);
  return fastestMs * 1000;
}

/**
 * Verifies the signature with a cached key object (RFC 7515 section 5.2), on the event loop. Times are not looked at here:
 * claims are checked after the signature.
 *
 * @throws AuthError `bad_signature`
 */
export function verifySignature(token: SignedText, key: KeyObject, algorithm: Algorithm): void {
  let isGood: boolean;
  try {
    isGood = hasRightLength(token, key, algorithm) && verify(...argumentsOf(token, key, algorithm));
  } catch (cause) {
    throw new AuthError('bad_signature', { cause });
  }
  if (!isGood) throw new AuthError('bad_signature');
}

/** The same in libuv's thread pool. Rejects with an AuthError `bad_signature`. */
export async function verifySignatureInPool(token: SignedText, key: KeyObject, algorithm: Algorithm): Promise<void> {
  let isGood: boolean;
  try {
    isGood = hasRightLength(token, key, algorithm) && (await verifyInPool(...argumentsOf(token, key, algorithm)));
  } catch (cause) {
    throw new AuthError('bad_signature', { cause });
  }
  if (!isGood) throw new AuthError('bad_signature');
}

const verifyInPool = promisify(verify) as (...given: VerifyArguments) => Promise<boolean>;

type VerifyArguments = [hash: string | null, data: Buffer, key: VerifyKeyObjectInput, signature: Buffer];

function argumentsOf({ signingInput, signature }: SignedText, key: KeyObject, algorithm: Algorithm): VerifyArguments {
  const { hash, parameters } = SCHEMES[algorithm];
  return [hash, Buffer.from(signingInput, 'latin1'), ownMembers({ key, ...parameters }), signature];
}

/**
 * Whether a signature is as long as the modulus of an RSA key (RFC 8017 section 8.1.2, step 1). OpenSSL checks it for
 * PKCS #1 v1.5 only: for PSS it would accept a signature without its leading zero bytes, and so a second spelling of the
 * same token.
 */
function hasRightLength({ signature }: SignedText, key: KeyObject, algorithm: Algorithm): boolean {
  if (SCHEMES[algorithm].parameters !== PSS) return true;
  return signature.length === Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8);
}
/** Signs a text, off the main thread. The error tells nothing of the key. */
export function signText(text: string, key: KeyObject, algorithm: Algorithm): Promise<Buffer> {
  const { hash, parameters } = SCHEMES[algorithm];
  return new Promise((resolve, reject) => {
    sign(hash, Buffer.from(text), ownMembers({ key, ...parameters }), (error, signature) => {
      if (error) reject(new Error('the text could not be signed'));
      else resolve(signature);
    });
  });
}
