import { createHash, createPrivateKey, createPublicKey, generateKeyPair } from 'node:crypto';
import type { JsonWebKey, KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { AuthServerSettings } from '../options';
import type { KeyRing, SigningAlgorithm, StoredKey } from './state';
import type { Store } from './store';

/** The members that a thumbprint covers, in order (RFC 7638 section 3.2). */
const THUMBPRINT_MEMBERS = { RS256: ['e', 'kty', 'n'], ES256: ['crv', 'kty', 'x', 'y'] } as const;

/** The clock of a resource server may be slow by this much. */
const SKEW_MS = 60_000;

const generate = promisify(generateKeyPair);

/** Makes a key: RSA of 2048 bits (RFC 7518 section 3.3) or P-256 (section 3.4). Its `kid` is its thumbprint. */
export async function newSigningKey(alg: SigningAlgorithm): Promise<StoredKey> {
  const { privateKey } =
    alg === 'RS256' ? await generate('rsa', { modulusLength: 2048 }) : await generate('ec', { namedCurve: 'P-256' });
  const jwk = privateKey.export({ format: 'jwk' });
  const required = Object.fromEntries(THUMBPRINT_MEMBERS[alg].map((name) => [name, jwk[name]]));
  const kid = createHash('sha256').update(JSON.stringify(required)).digest('base64url');
  return { kid, alg, jwk, publishedUntilMs: Number.MAX_SAFE_INTEGER };
}

/**
 * Signs with a new key from now on; earlier keys stay published until their last token has expired. Resolves with the
 * `kid` of the new key once it is on disk.
 */
export async function rotateKeys(store: Store, settings: AuthServerSettings): Promise<string> {
  const signing = await newSigningKey(settings.signingAlgorithm);
  const publishedForMs = settings.tokenLifetimeSeconds * 1000 + SKEW_MS;
  return store.change(({ keys }, nowMs) => {
    const { kid, alg, jwk } = keys.signing;
    const retired = { kid, alg, jwk: toPublic(jwk), publishedUntilMs: nowMs + publishedForMs };
    return { keys: { signing, retired: [retired, ...keys.retired].filter(isPublishedAt(nowMs)) }, value: signing.kid };
  });
}

/** The entries of the key set (RFC 7517 section 4) at a time: of retired keys, those whose tokens may still be valid. */
export function publishedKeys({ signing, retired }: KeyRing, nowMs: number): JsonWebKey[] {
  const published = [signing, ...retired].filter(isPublishedAt(nowMs));
  return published.map(({ kid, alg, jwk }) => ({ ...toPublic(jwk), use: 'sig', alg, kid }));
}

const privateKeys = new WeakMap<StoredKey, KeyObject>();

/** The private key, imported once: that takes as long as a signature. */
export function privateKeyOf(key: StoredKey): KeyObject {
  const known = privateKeys.get(key) ?? createPrivateKey({ key: key.jwk, format: 'jwk' });
  privateKeys.set(key, known);
  return known;
}

function isPublishedAt(nowMs: number): (key: StoredKey) => boolean {
  return ({ publishedUntilMs }) => nowMs < publishedUntilMs;
}

function toPublic(jwk: JsonWebKey): JsonWebKey {
  return createPublicKey({ key: jwk, format: 'jwk' }).export({ format: 'jwk' });
}
