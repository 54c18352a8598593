import { createPublicKey } from 'node:crypto';
import type * as jwksRsa from 'jwks-rsa';
import { errorLabel } from '../../core/logger';
import type { Logger } from '../../core/logger';
import { loggableUrl } from '../../core/urls';
import { discoverEndpoint } from './discovery';
import type { DiscoveryOptions } from './discovery';
import { fetchJson, FetchError } from './fetch-json';
import type { FetchJsonOptions } from './fetch-json';
import { toVerificationKey, unsuitable } from './jwk';
import type { Jwk, VerificationKey } from './jwk';

/** Fetches the key set of an issuer once, until the signal aborts it. Rejects with `NoUsableKey` where no key is usable. */
export type FetchKeys = (signal: AbortSignal) => Promise<FetchedKeys>;

/** A key set as it was fetched. */
export interface FetchedKeys {
  readonly keys: readonly VerificationKey[];
  readonly unusable: UnusableKeys;
}

/** Why keys must not verify anything, by their ids. */
export type UnusableKeys = ReadonlyMap<string, string>;

/** A key set in which no key can verify access tokens. */
export class NoUsableKey extends FetchError {
  readonly unusable: UnusableKeys;

  constructor(jwksUri: string, unusable: UnusableKeys, cause?: unknown) {
    super(`${loggableUrl(jwksUri)} has no key that can verify access tokens`, { cause });
    this.unusable = unusable;
  }
}

/** How a key set is fetched. */
export interface FetchKeysOptions extends Omit<DiscoveryOptions, 'signal'> {
  /** URL of the key set. Default: discovered at every fetch, so that a changed `jwks_uri` is followed. */
  readonly jwksUri: string | undefined;
  readonly logger: Logger;
}

/** Importing a key blocks the process for half a millisecond; real issuers publish a dozen at most. */
const MAX_KEYS = 200;
const MAX_WARNINGS = 100;

/**
 * Makes the function that fetches an issuer's keys. jwks-rsa fetches (through the bounded fetch) and parses; keys that
 * must not verify anything are left out, with one warning for each.
 */
export function keyFetcher(options: FetchKeysOptions): FetchKeys {
  const warned = new Set<string>();
  let known = new Map<string, VerificationKey>();

  function warnIgnored(given: unknown, why: string): void {
    // Not String(): a kid can be an object without a text, and one odd key must not fail the others.
    const kid = typeof given === 'string' ? given.slice(0, 80) : `a kid of type ${typeof given}`;
    if (warned.size >= MAX_WARNINGS || warned.has(kid + why)) return;
    warned.add(kid + why);
    options.logger.warn({ issuer: options.issuer, kid, why }, 'a key of the key set is ignored');
  }

  return async function fetchKeys(signal) {
    const ignored = new Map<string, string>();

    function ignore(jwk: unknown, why: string): void {
      const { kid } = (jwk ?? {}) as Jwk;
      if (typeof kid === 'string') ignored.set(kid, why);
      warnIgnored(kid, why);
    }

    function isSuitable(jwk: unknown): jwk is Jwk {
      const why = unsuitable(jwk);
      if (why !== undefined) ignore(jwk, why);
      return why === undefined;
    }

    const bounds = { ...options, signal };
    const jwksUri = options.jwksUri ?? (await discoverEndpoint('jwks_uri', bounds));
    const { suitable, parsed, cause } = await parseKeys(jwksUri, async () =>
      (await fetchJwks(jwksUri, bounds)).filter(isSuitable),
    );
    for (const jwk of suitable) {
      if (!parsed.some(({ kid }) => kid === jwk['kid'])) ignore(jwk, 'it cannot be parsed');
    }
    const keys = new Map<string, VerificationKey>();
    for (const { kid, alg, getPublicKey } of parsed) {
      const key = toVerificationKey({ kid, alg }, createPublicKey(getPublicKey()));
      // The same key stays the same object, so that cached tokens that were verified with it stay valid.
      const identity = JSON.stringify([kid, alg, getPublicKey()]);
      if (typeof key === 'string') ignore({ kid }, key);
      else keys.set(identity, known.get(identity) ?? key);
    }
    if (keys.size === 0) throw new NoUsableKey(jwksUri, ignored, cause);
    known = keys;
    return { keys: [...keys.values()], unusable: ignored };
  };
}

async function fetchJwks(jwksUri: string, options: FetchJsonOptions): Promise<readonly unknown[]> {
  const { keys } = await fetchJson(jwksUri, options);
  const url = loggableUrl(jwksUri);
  if (!Array.isArray(keys) || keys.length === 0) throw new FetchError(`${url} is not a key set with keys in it`);
  if (keys.length > MAX_KEYS) throw new FetchError(`${url} has more than ${MAX_KEYS} keys`);
  return keys as readonly unknown[];
}

interface ParsedKey {
  readonly kid?: string;
  readonly alg?: string;
  readonly getPublicKey: () => string;
}

interface ParsedKeys {
  readonly suitable: readonly Jwk[];
  /** jwks-rsa leaves out what it cannot parse. */
  readonly parsed: readonly ParsedKey[];
  /** What jwks-rsa rejected with, because it could parse none. */
  readonly cause?: unknown;
}

async function parseKeys(jwksUri: string, fetchSuitable: () => Promise<readonly Jwk[]>): Promise<ParsedKeys> {
  const { JwksClient } = loadJwksRsa();
  let suitable: readonly Jwk[] = [];
  const fetcher = async (): Promise<{ keys: readonly Jwk[] }> => ({ keys: (suitable = await fetchSuitable()) });
  const client = new JwksClient({ jwksUri: loggableUrl(jwksUri), cache: false, rateLimit: false, fetcher });
  try {
    return { parsed: await client.getSigningKeys(), suitable };
  } catch (cause) {
    // jwks-rsa rejects when no key can be parsed.
    if (cause instanceof FetchError) throw cause;
    return { parsed: [], suitable, cause };
  }
}

/** Loaded at the first fetch: static keys need none of it. A default Jest has no loader for dynamic imports. */
function loadJwksRsa(): typeof jwksRsa {
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import would load it immediately
    return require('jwks-rsa') as typeof jwksRsa;
  } catch (cause) {
    throw new FetchError(`jwks-rsa could not be loaded: ${errorLabel(cause)}`, { cause });
  }
}
