import { createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { JwksClient } from 'jwks-rsa';
import type { Logger } from '../../core/logger';
import { discoverJwksUri } from './discovery';
import type { DiscoveryOptions } from './discovery';
import { fetchJson, FetchError } from './fetch-json';
import type { FetchJsonOptions } from './fetch-json';
import { importJwk, toVerificationKey, unsuitable } from './jwk';
import type { Jwk, VerificationKey } from './jwk';

/** One fetch of an issuer's key set, until the signal ends it. */
export type FetchKeys = (signal: AbortSignal) => Promise<readonly VerificationKey[]>;

/** How a key set is fetched. */
export interface FetchKeysOptions extends Omit<DiscoveryOptions, 'signal'> {
  /** Address of the key set; discovered anew at every fetch when absent, so that a changed `jwks_uri` is followed. */
  readonly jwksUri: string | undefined;
  readonly logger: Logger;
}

/** To import a key takes half a millisecond, during which nothing else runs; real issuers publish a dozen at most. */
const MAX_KEYS = 200;

/**
 * Makes the function that fetches an issuer's keys. jwks-rsa fetches (through our bounded fetch) and parses; keys that
 * must not verify anything are left out with a warning, each once.
 */
export function keyFetcher(options: FetchKeysOptions): FetchKeys {
  const warned = new Set<string>();
  const known = new Map<string, VerificationKey>();

  function ignore(jwk: unknown, why: string): undefined {
    const { kid: given } = (jwk ?? {}) as Jwk;
    // Not String(): a kid can be an object that has no text, and one odd key must not take the others with it.
    const kid = typeof given === 'string' ? given.slice(0, 80) : `a kid of type ${typeof given}`;
    if (warned.size < 100 && !warned.has(kid + why)) {
      warned.add(kid + why);
      options.logger.warn({ issuer: options.issuer, kid, why }, 'a key of the key set is ignored');
    }
    return undefined;
  }

  /** The same key material stays the same object, so that verdicts reached with it stay good. */
  function remember(key: VerificationKey, jwk: Jwk): VerificationKey {
    const identity = JSON.stringify([key.keyId, jwk['alg'], key.key.export({ type: 'spki', format: 'pem' })]);
    const remembered = known.get(identity) ?? key;
    known.set(identity, remembered);
    return remembered;
  }

  return async function fetchKeys(signal) {
    const bounds = { ...options, signal };
    const jwksUri = options.jwksUri ?? (await discoverJwksUri(bounds));
    let jwks: readonly Jwk[] = [];
    const parsed = await parseKeys(jwksUri, async () => {
      jwks = await fetchJwks(jwksUri, bounds);
      const suitable = jwks.filter((jwk) => {
        const why = unsuitable(jwk);
        return why === undefined || ignore(jwk, why);
      });
      jwks = suitable;
      // jwks-rsa leaves out what it cannot parse: the position as key id says afterwards which ones are left.
      return { keys: suitable.map((jwk, position) => ({ ...jwk, kid: String(position) })) };
    });
    const keys = jwks.flatMap((jwk, position) => {
      const material = parsed.get(String(position));
      const key = material === undefined ? 'it cannot be parsed' : toVerificationKey(jwk, material);
      if (typeof key !== 'string') return [remember(key, jwk)];
      ignore(jwk, key);
      return [];
    });
    if (keys.length === 0) throw noUsableKey(jwksUri);
    forgetAllBut(known, keys);
    return keys;
  };
}

function noUsableKey(jwksUri: string, cause?: unknown): FetchError {
  return new FetchError(`${jwksUri} has no key that can verify access tokens`, { cause });
}

async function fetchJwks(jwksUri: string, options: FetchJsonOptions): Promise<readonly Jwk[]> {
  const { keys } = await fetchJson(jwksUri, options);
  if (!Array.isArray(keys) || keys.length === 0) throw new FetchError(`${jwksUri} is no key set with keys in it`);
  if (keys.length > MAX_KEYS) throw new FetchError(`${jwksUri} has more than ${MAX_KEYS} keys`);
  return keys as readonly Jwk[];
}

function forgetAllBut(known: Map<string, VerificationKey>, keys: readonly VerificationKey[]): void {
  for (const [identity, key] of known) {
    if (!keys.includes(key)) known.delete(identity);
  }
}

/** Key material by key id, of the keys that can be parsed. */
async function parseKeys(
  jwksUri: string,
  fetcher: () => Promise<{ keys: readonly Jwk[] }>,
): Promise<ReadonlyMap<unknown, KeyObject>> {
  const client = await jwksClient(jwksUri, fetcher);
  if (!client) {
    const { keys } = await fetcher();
    const parsed = new Map<unknown, KeyObject>();
    for (const jwk of keys) {
      const key = importJwk(jwk);
      if (key) parsed.set(jwk['kid'], key);
    }
    return parsed;
  }
  const signingKeys = await client.getSigningKeys().catch((cause: unknown) => {
    // jwks-rsa rejects where it finds nothing to parse.
    throw cause instanceof FetchError ? cause : noUsableKey(jwksUri, cause);
  });
  return new Map(signingKeys.map((key) => [key.kid, createPublicKey(key.getPublicKey())]));
}

/**
 * Loaded only here: jwks-rsa needs jose, which is ESM only, and static keys must work where that cannot be loaded.
 * `undefined` there, which is in Jest before Node 24.9: keys are then read as static ones are.
 */
async function jwksClient(jwksUri: string, fetcher: () => Promise<{ keys: unknown }>): Promise<JwksClient | undefined> {
  const jwksRsa = await import('jwks-rsa').catch(() => undefined);
  return jwksRsa && new jwksRsa.JwksClient({ jwksUri, cache: false, rateLimit: false, fetcher });
}
