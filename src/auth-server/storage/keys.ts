import { createHash, createPrivateKey, createPublicKey, generateKeyPair } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { KeyRing, RetiredKey, SigningAlgorithm, SigningKey } from './state';

/** An entry of the key set (RFC 7517 section 4): public members only. */
export interface PublishedKey extends JsonWebKey {
  readonly use: 'sig';
  readonly alg: SigningAlgorithm;
  readonly kid: string;
}

/** The members that a thumbprint covers, in order (RFC 7638 section 3.2). */
const THUMBPRINT_MEMBERS = { RS256: ['e', 'kty', 'n'], ES256: ['crv', 'kty', 'x', 'y'] } as const;

const generate = promisify(generateKeyPair);
const privateKeys = new WeakMap<SigningKey, KeyObject>();

/** Makes a key: RSA of 2048 bits (RFC 7518 section 3.3) or P-256 (section 3.4). */
export async function newSigningKey(alg: SigningAlgorithm): Promise<SigningKey> {
  const { privateKey, publicKey } =
    alg === 'RS256' ? await generate('rsa', { modulusLength: 2048 }) : await generate('ec', { namedCurve: 'P-256' });
  return {
    kid: thumbprint(alg, publicKey.export({ format: 'jwk' })),
    alg,
    privateJwk: privateKey.export({ format: 'jwk' }),
  };
}

/** The ring after a rotation to `next`: earlier keys stay published until their last token has expired. */
export function rotatedKeys(ring: KeyRing, next: SigningKey, publishedUntilMs: number, nowMs: number): KeyRing {
  const { kid, alg } = ring.signing;
  const retired: RetiredKey = { kid, alg, publicJwk: publicJwkOf(ring.signing), publishedUntilMs };
  return { signing: next, retired: [retired, ...ring.retired.filter((key) => isPublished(key, nowMs))] };
}

/** The key set at a time: the key that signs, and the retired ones whose tokens may still be valid. */
export function publishedKeys({ signing, retired }: KeyRing, nowMs: number): PublishedKey[] {
  const current = { kid: signing.kid, alg: signing.alg, publicJwk: publicJwkOf(signing) };
  return [current, ...retired.filter((key) => isPublished(key, nowMs))].map(({ kid, alg, publicJwk }) => ({
    ...publicJwk,
    use: 'sig',
    alg,
    kid,
  }));
}

/** The private key as a `KeyObject`, imported once. */
export function privateKeyOf(key: SigningKey): KeyObject {
  const known = privateKeys.get(key) ?? createPrivateKey({ key: key.privateJwk, format: 'jwk' });
  privateKeys.set(key, known);
  return known;
}

function isPublished({ publishedUntilMs }: RetiredKey, nowMs: number): boolean {
  return nowMs < publishedUntilMs;
}

function publicJwkOf(key: SigningKey): JsonWebKey {
  return createPublicKey(privateKeyOf(key)).export({ format: 'jwk' });
}

/** The thumbprint of a key (RFC 7638 section 3), used as its `kid`. */
function thumbprint(alg: SigningAlgorithm, jwk: JsonWebKey): string {
  const required = Object.fromEntries(THUMBPRINT_MEMBERS[alg].map((name) => [name, jwk[name]]));
  return createHash('sha256').update(JSON.stringify(required)).digest('base64url');
}
