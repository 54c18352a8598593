import { createPublicKey } from 'node:crypto';
import * as timers from 'node:timers';
import type * as jwksRsa from 'jwks-rsa';
import { errorLabel, type Logger } from '../../core/logger';
import { attempt, isObject, ownMembers } from '../../core/objects';
import { loggableUrl, parseUrl } from '../../core/urls';
import { FetchError, fetchObject, type Fetch, type FetchOptions } from '../../net/http';
import type { JsonObject } from '../../net/strict-json';
import type { Preset } from '../presets';
import { toVerificationKey, unsuitable, type VerificationKey } from './key-set';

/** Where the metadata of an issuer is fetched. */
export interface DiscoveryOptions extends FetchOptions {
  /** The issuer that the metadata must name, exactly (RFC 8414 section 3.3). */
  readonly issuer: string;
  /** URL from which the well-known URLs are built; usually the issuer. */
  readonly authUrl: string;
  /** Throws when a URL must not be used, for example because it is not https. */
  readonly checkUrl: (url: string, what: string) => void;
}

/** The URLs that are read from an issuer's metadata. */
type MetadataMember = 'jwks_uri' | 'introspection_endpoint' | 'token_endpoint';

/**
 * Finds a URL in an issuer's metadata: OpenID Connect Discovery 1.0 section 4 first, then RFC 8414 section 3.
 *
 * @throws FetchError when neither document exists, or one exists and cannot be trusted.
 */
export async function discoverEndpoint(member: MetadataMember, options: DiscoveryOptions): Promise<string> {
  const [oidc, oauth] = wellKnownUrls(options.authUrl);
  try {
    return await urlAt(oidc, member, options);
  } catch (error) {
    // Only a missing document leads to the other form: one that cannot be trusted must not.
    if (!(error instanceof FetchError) || error.status === undefined || error.status < 400) throw error;
  }
  return urlAt(oauth, member, options);
}

/** Both well-known URLs of an issuer: OIDC appends to the path, RFC 8414 section 3.1 inserts before it. */
function wellKnownUrls(issuer: string): readonly [oidc: string, oauth: string] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ];
}

async function urlAt(document: string, member: MetadataMember, options: DiscoveryOptions): Promise<string> {
  const { issuer, [member]: url } = await fetchObject(document, options);
  const name = loggableUrl(document);
  if (issuer !== options.issuer) {
    const named = typeof issuer === 'string' ? JSON.stringify(issuer.slice(0, 200)) : 'none';
    const why = isWithoutTls(issuer, options.issuer) ? `; ${BEHIND_PROXY}` : '';
    throw new FetchError(
      `${name} names another issuer: expected ${JSON.stringify(options.issuer)}, got ${named}${why}`,
    );
  }
  if (typeof url !== 'string' || !parseUrl(url)) throw new FetchError(`${name} has no usable ${member}`);
  try {
    options.checkUrl(url, member);
  } catch {
    const article = member === 'introspection_endpoint' ? 'an' : 'a';
    const isOfProxy = member === 'jwks_uri' && /^http:\/\/[^@]*$/.test(url);
    throw new FetchError(
      `${name} names ${article} ${member} that is neither https: nor on loopback, or that has user info${isOfProxy ? `: ${loggableUrl(url)}; ${BEHIND_PROXY}` : ''}`,
    );
  }
  return url;
}

/** Whether a server names itself by the URL that is expected, without TLS. */
export const isWithoutTls = (got: unknown, expected: string): boolean => got === expected.replace(/^https:/, 'http:');

export const BEHIND_PROXY =
  'behind a proxy that ends TLS the server must read the forwarded headers, or be told its public URL';

/** The keys of a key set. */
export interface FetchedKeys {
  /** The key set as it was published. */
  readonly jwks: readonly unknown[];
  readonly keys: readonly VerificationKey[];
  /** Why keys must not verify anything, by their ids. */
  readonly unusable: ReadonlyMap<string, string>;
  /** How long a cache had kept the response, in ms (RFC 9111 section 5.1). Default 0. */
  readonly ageMs?: number;
}

/** A key set in which no key can verify access tokens. */
export class NoUsableKey extends FetchError {
  readonly unusable: FetchedKeys['unusable'];

  constructor(jwksUri: string, unusable: FetchedKeys['unusable'], cause?: unknown) {
    super(`${loggableUrl(jwksUri)} has no key that can verify access tokens`, { cause });
    this.unusable = unusable;
  }
}

/** Importing a key blocks the process for half a millisecond; real issuers publish a dozen at most. */
const MAX_KEYS = 200;
const MAX_WARNINGS = 100;

/** Where the key set of an issuer is. */
type KeySetSettings = Omit<DiscoveryOptions, keyof FetchOptions> & {
  /** Default: discovered at every fetch, so that a changed `jwks_uri` is followed. */
  readonly jwksUri: string | undefined;
  readonly preset: Pick<Preset, 'tenantClaim'>;
};

/** Fetches the keys of one issuer, and reads a key set of it that was kept. Both reject with `NoUsableKey` where none is usable. */
export interface KeyFetcher {
  /** Fetches once, until the signal aborts it. */
  readonly fetch: (signal: AbortSignal) => Promise<FetchedKeys>;
  readonly read: (jwks: readonly unknown[]) => Promise<FetchedKeys>;
}

/**
 * Makes the fetcher for an issuer's keys. jwks-rsa parses them; keys that must not verify anything are left out, with one
 * warning for each.
 */
export function keyFetcher(
  settings: KeySetSettings,
  { fetch, logger }: { readonly fetch?: Fetch | undefined; readonly logger: Logger },
): KeyFetcher {
  const limits = new TenantLimits(settings);
  const warnIgnored = warnerOf(settings.issuer, logger);
  let known = new Map<string, VerificationKey>();

  async function read(jwks: readonly unknown[], jwksUri: string): Promise<FetchedKeys> {
    const ignored = new Map<string, string>();

    function ignore(jwk: unknown, why: string): void {
      const kid = isObject(jwk) ? jwk['kid'] : undefined;
      if (typeof kid === 'string') ignored.set(kid, why);
      // Keycloak and others publish their encryption keys too: that is no mistake.
      if (!isObject(jwk) || jwk['use'] !== 'enc') warnIgnored(kid, why);
    }

    function isSuitable(jwk: unknown): jwk is JsonObject {
      const why = unsuitable(jwk) ?? limits.refuse(jwk as JsonObject);
      if (why !== undefined) ignore(jwk, why);
      return why === undefined;
    }

    const suitable = jwks.filter(isSuitable);
    const { parsed, cause } = await parseKeys(jwksUri, suitable);
    const keys = new Map<string, VerificationKey>();
    for (const [index, jwk] of suitable.entries()) if (!parsed.has(index)) ignore(jwk, 'it cannot be parsed');
    for (const [index, pem] of parsed) {
      const jwk = suitable[index]!;
      const key = toVerificationKey(jwk, createPublicKey(pem));
      const tenant = limits.tenantFor(jwk);
      // The same key stays the same object, so that cached tokens that were verified with it stay valid.
      const identity = JSON.stringify([jwk['kid'], jwk['alg'], pem, tenant]);
      if (typeof key === 'string') ignore(jwk, key);
      else keys.set(identity, known.get(identity) ?? { ...key, tenant });
    }
    if (keys.size === 0) throw new NoUsableKey(jwksUri, ignored, cause);
    known = keys;
    return { jwks, keys: [...keys.values()], unusable: ignored };
  }

  return {
    async fetch(signal) {
      const bounds = { ...settings, fetch, signal };
      // It takes 50 ms, in which the key set is on its way. A gate that was closed meanwhile loads nothing.
      defer(() => void (signal.aborted || attempt(loadJwksRsa)));
      const jwksUri = settings.jwksUri ?? (await discoverEndpoint('jwks_uri', bounds));
      let ageMs = 0;
      const jwks = await fetchJwks(jwksUri, { ...bounds, onHeaders: (header) => (ageMs = ageOf(header('age'))) });
      return { ...(await read(jwks, jwksUri)), ageMs };
    },
    read: (jwks) => read(jwks, settings.jwksUri ?? settings.issuer),
  };
}

/** Warns once of each key that is ignored. */
function warnerOf(issuer: string, logger: Logger) {
  const warned = new Set<string>();
  return (given: unknown, why: string): void => {
    // Not String(): a kid can be an object without a text, and one odd key must not fail the others.
    const kid = typeof given === 'string' ? given.slice(0, 80) : `a kid of type ${typeof given}`;
    if (warned.size >= MAX_WARNINGS || warned.has(kid + why)) return;
    warned.add(kid + why);
    logger.warn({ issuer, kid, why }, 'a key of the key set is ignored');
  };
}

/**
 * Which keys of a key set that tenants share may sign for the configured issuer: each JWK names its issuer, with `{tenantid}`
 * where it is that of every tenant. Entra expects APIs to compare it.
 */
class TenantLimits {
  readonly #isShared: boolean;
  /** That of the configured issuer, whose first path segment it is. */
  readonly #tenant: string;
  readonly #issuers: readonly string[];

  constructor({ issuer, jwksUri, preset }: KeySetSettings) {
    this.#isShared = preset.tenantClaim !== undefined;
    this.#tenant = /^https?:\/\/[^/]+\/([^/]+)/.exec(issuer)?.[1] ?? '';
    // Metadata that names the key set has been compared with the issuer: it is that of the same tenant.
    const named = jwksUri === undefined ? issuer : `${new URL(jwksUri).origin}/${TENANT}/v2.0`;
    this.#issuers = this.#tenant === '' ? [] : [issuer, this.#inTenant(named)];
  }

  /** Why a key must not verify tokens of the issuer. */
  refuse(jwk: JsonObject): string | undefined {
    const isForOthers = this.#isLimited(jwk) && !this.#issuers.includes(this.#inTenant(jwk['issuer'] as string));
    return isForOthers ? 'its issuer is another one' : undefined;
  }

  /** The tenant that tokens of a key must name; `undefined` for a key that is not limited. */
  tenantFor(jwk: JsonObject): string | undefined {
    return this.#isLimited(jwk) ? this.#tenant : undefined;
  }

  #isLimited({ issuer }: JsonObject): boolean {
    return this.#isShared && typeof issuer === 'string' && issuer.trim() !== '';
  }

  #inTenant(text: string): string {
    return text.replaceAll(TENANT, () => this.#tenant);
  }
}

const TENANT = '{tenantid}';

/** The first member of the header counts, and one that is not a number of seconds is ignored (RFC 9111 section 5.1). */
function ageOf(age = ''): number {
  const [seconds = ''] = age.split(',');
  return /^\d+$/.test(seconds.trim()) ? Number(seconds) * 1000 : 0;
}

async function fetchJwks(jwksUri: string, options: FetchOptions): Promise<readonly unknown[]> {
  const { keys } = await fetchObject(jwksUri, options);
  const url = loggableUrl(jwksUri);
  if (!Array.isArray(keys) || keys.length === 0) throw new FetchError(`${url} is not a key set with keys in it`);
  if (keys.length > MAX_KEYS) throw new FetchError(`${url} has more than ${MAX_KEYS} keys`);
  return keys as readonly unknown[];
}

/** The public keys by their places in the list: jwks-rsa leaves out what it cannot parse. `cause`: why it could parse none. */
async function parseKeys(jwksUri: string, suitable: readonly JsonObject[]) {
  const { JwksClient } = loadJwksRsa();
  // The place is the kid, because several keys can have the same one.
  const keys = suitable.map((jwk, index) => ownMembers({ ...jwk, kid: String(index) }));
  const fetcher = (): Promise<{ keys: readonly JsonObject[] }> => Promise.resolve({ keys });
  const client = new JwksClient({ jwksUri: loggableUrl(jwksUri), cache: false, rateLimit: false, fetcher });
  try {
    const found = (await client.getSigningKeys()).map(ownMembers);
    return { parsed: new Map(found.map((key) => [Number(key.kid), key.getPublicKey()])), cause: undefined };
  } catch (cause) {
    // jwks-rsa rejects when no key can be parsed.
    return { parsed: new Map<number, string>(), cause };
  }
}

/** The real timer: an app may fake it in its tests. */
const { setImmediate: defer } = timers;

/** Loaded with the first fetch: static keys need none of it. A default Jest has no loader for dynamic imports. */
function loadJwksRsa(): typeof jwksRsa {
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import would load it immediately
    return require('jwks-rsa') as typeof jwksRsa;
  } catch (cause) {
    throw new FetchError(`jwks-rsa could not be loaded: ${errorLabel(cause)}`, { cause });
  }
}
