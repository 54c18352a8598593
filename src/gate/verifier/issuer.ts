import type { IssuerStatus } from '../core/gate-status';
import { AuthError, identify } from '../core/errors';
import { parseUrl } from '../core/urls';
import type * as Sources from '../generation/from-url';
import { Follower } from '../generation/follower';
import { keyFetcher } from '../token/keys/fetch-keys';
import { staticKeys, type KeySource, type VerificationKey } from '../token/keys/key-set';
import type * as KeyStores from '../token/keys/key-store';
import { RemoteKeys } from '../token/keys/remote-keys';
import type { Preset } from '../token/presets';
import { scopeReader } from '../token/scopes';
import type { Caller } from '../token/fair-queue';
import type { SignatureVerifier } from '../token/signature';
import type { JsonObject } from '../net/strict-json';
import { claimsCheck, clientNamedIn, TokenVerifier, type ClaimsCheck } from '../token/verify';
import type { Auth } from './options';
import type { GateDependencies, IssuerSettings } from './read-options';

/** How the claims of one kind of token are checked and read. */
interface ClaimsPolicy {
  readonly verifyClaims: ClaimsCheck;
  readonly readScopes: ReturnType<typeof scopeReader>;
  readonly preset: Preset;
}

/** Everything that decides about the tokens of one issuer. */
export interface IssuerContext {
  readonly issuer: string;
  readonly preset: IssuerStatus['preset'];
  readonly keys: KeySource;
  readonly verifier: TokenVerifier;
  /** For signed tokens. */
  readonly policy: ClaimsPolicy;
  /** Absent where the generation check is switched off. */
  readonly generations: Follower | undefined;
  /** Stops following keys and generations. */
  readonly close: () => Promise<void>;
}

/* eslint-disable @typescript-eslint/no-require-imports -- loaded by gates with these options */
const keyStores = () => require('../token/keys/key-store') as typeof KeyStores;
const sources = () => require('../generation/from-url') as typeof Sources;

const FETCH_TIMEOUT_MS = 5_000;
const MAX_DOCUMENT_BYTES = 1_048_576;

/** Opens the keys and generations of one issuer. Never waits, and never fails because of an outage. */
export function openIssuer(
  settings: IssuerSettings,
  signatures: SignatureVerifier,
  dependencies: GateDependencies,
): IssuerContext {
  const { issuer, algorithms, preset, presetChoice, scopes } = settings;
  if (presetChoice.chosenBy === 'issuer') {
    const message = `preset ${presetChoice.name}, by the issuer's URL; name it to be sure`;
    dependencies.logger.info({ issuer }, message);
  }
  const doubt = doubtAbout(settings);
  if (doubt !== undefined) dependencies.logger.warn({ issuer }, doubt);
  const keys = openKeys(settings, dependencies);
  const generations = openGenerations(settings, dependencies);
  const { clock } = dependencies;
  const verifier = new TokenVerifier({ rules: settings, algorithms, keys, signatures, clock });
  const policy = {
    verifyClaims: claimsCheck(settings, clock),
    readScopes: scopeReader(preset.scopeClaims, scopes),
    preset,
  };
  const close = async (): Promise<void> => {
    keys.close();
    await generations?.close();
  };
  return { issuer, preset: presetChoice, keys, verifier, policy, generations, close };
}

/** What is probably wrong with the URL of an issuer, where no token can show it. */
function doubtAbout({ issuer }: IssuerSettings): string | undefined {
  const { hostname, pathname } = parseUrl(issuer) ?? {};
  if (hostname === undefined) return undefined;
  if (hostname.endsWith('.auth0.com') && pathname === '/' && !issuer.endsWith('/')) {
    return `the iss of Auth0 ends in a slash: the issuer is "${issuer}/"`;
  }
  if (/\.okta(?:preview)?\.com$/.test(hostname) && !pathname?.startsWith('/oauth2/')) {
    return "this is Okta's organization authorization server, whose tokens only Okta can verify: use a custom authorization server, such as /oauth2/default";
  }
  return undefined;
}

/** Opens the keys of an issuer: those that are given, which may be none where all its tokens can be opaque, or those it publishes. */
function openKeys(settings: IssuerSettings, dependencies: GateDependencies): KeySource {
  if (settings.keys) return staticKeys(settings.keys, settings.opaque !== undefined);
  const { issuer, authUrl, jwksUri, checkUrl, preset, keyStore: store, keysMaxAgeMs, keysStaleMs } = settings;
  const { fetch, clock, schedule, random, logger } = dependencies;
  const document = { issuer, authUrl, jwksUri, checkUrl, fetch, maxBytes: MAX_DOCUMENT_BYTES };
  const { fetch: fetchKeys, read: readKeys } = keyFetcher({ ...document, preset, logger });
  const kept = store && keyStores().keptKeys({ store, readKeys, issuer, jwksUri, clock, schedule, logger });
  const limits = { timeoutMs: FETCH_TIMEOUT_MS, keysMaxAgeMs, keysStaleMs };
  return new RemoteKeys({ issuer, fetchKeys, kept, ...limits, clock, schedule, random, logger });
}

function openGenerations(settings: IssuerSettings, dependencies: GateDependencies): Follower | undefined {
  const { issuer, generationClaim: claim, generationPath: path, elseIat, generationSource, preset } = settings;
  const { onStale, maxTokenAgeMs, maxStalenessMs, maxSilenceMs, clockToleranceMs } = settings;
  const { fetch, clock, schedule, random, logger, pollMs, readTimeoutMs } = dependencies;
  if (claim === undefined) return undefined;
  if (claim === 'iat' && generationSource === undefined) {
    const message =
      "generationClaim is 'iat', and there is no generationSource to compare it with: tokens are accepted until they expire";
    logger.warn({ issuer }, message);
  }
  const ownsSource = typeof generationSource === 'string';
  // The URL was checked with the options.
  const source = ownsSource
    ? sources().generationsFromUrl(generationSource, { fetch, clock, schedule, allowHttp: true })
    : generationSource;
  return new Follower({
    ...{ issuer, source, ownsSource, onStale, maxTokenAgeMs, maxStalenessMs, maxSilenceMs, skewMs: clockToleranceMs },
    rule: { claim, path, elseIat, decimalString: preset.generationAsString, toleranceMs: clockToleranceMs },
    ...{ pollMs, readTimeoutMs, clock, schedule, random, logger },
  });
}

/** Verifies the tokens of one kind. */
export interface Verifier {
  /**
   * Returns the caller of a token that was verified before, after checking again what changes: its key, its times, its
   * generation. `undefined`: verify it.
   *
   * @throws AuthError when the token is no longer accepted
   */
  known(token: string): Auth | undefined;
  /**
   * Verifies a token. Throws, or rejects with, the AuthError of the first check that fails.
   *
   * @param caller - takes turns with others where introspection or signatures have to wait
   */
  verify(token: string, caller?: Caller): Promise<Auth>;
}

/** A token whose claims a signature or the issuer's response vouches for. They may still be refused. */
export class TrustedToken {
  readonly claims: JsonObject;
  /** The key that has signed it; absent in an opaque token. */
  readonly key: VerificationKey | undefined;
  readonly context: IssuerContext;
  readonly #policy: ClaimsPolicy;
  /** Absent while the claims are refused. */
  #accepted: { readonly verified: ReturnType<ClaimsCheck>; readonly stamped: boolean; readonly auth: Auth } | undefined;

  constructor(context: IssuerContext, policy: ClaimsPolicy, claims: JsonObject, key?: VerificationKey) {
    this.context = context;
    this.#policy = policy;
    this.claims = claims;
    this.key = key;
  }

  /** Whether the key that has signed it is still in the key set. */
  get hasKey(): boolean {
    return this.key === undefined || this.context.keys.has(this.key);
  }

  /**
   * The caller it was accepted for, after checking again what changes: its times and its generation. `undefined` before
   * the first read of the generations has ended.
   *
   * @throws AuthError when the token is no longer accepted
   */
  known(nowMs: number): Auth | undefined {
    const { generations } = this.context;
    if (!this.#accepted || !isCurrent(this.#accepted.verified, nowMs)) {
      return generations?.settled() ? undefined : this.#accept();
    }
    const { auth } = this.#accepted;
    try {
      this.#recheckGeneration(auth);
    } catch (error) {
      throw identify(error, auth);
    }
    return auth;
  }

  /** Accepts it once the first read of the generations has ended. Throws, or rejects with, an AuthError. */
  accept(): Auth | Promise<Auth> {
    const settled = this.context.generations?.settled();
    return settled ? settled.then(() => this.#accept()) : this.#accept();
  }

  /** Checks the claims, then the generation: only a token that passed every other check may raise a floor. Then reads the scopes. */
  #accept(): Auth {
    try {
      const verified = this.#policy.verifyClaims(this.claims, this.key);
      const { issuer, clientId, subject, tokenId, expiresAtMs, claims } = verified;
      const { generations } = this.context;
      const generation = generations?.verify(clientId, claims);
      const scopes = Object.freeze(this.#policy.readScopes(claims));
      const auth = Object.freeze({ issuer, clientId, subject, tokenId, scopes, generation, expiresAtMs, claims });
      this.#accepted = { verified, auth, stamped: generations?.isStamped(claims) ?? true };
      tokenOfAuth.set(auth, this);
      return auth;
    } catch (error) {
      throw identify(error, this.#client());
    }
  }

  /** The client of the token, even if its claims are refused. */
  #client(): AuthError['client'] {
    const { issuer } = this.context;
    if ((this.claims['iss'] ?? issuer) !== issuer) return undefined;
    return { issuer, clientId: clientNamedIn(this.claims, this.#policy.preset) };
  }

  /**
   * Checks again what changes about a caller that it was accepted for: the key, the times, the generation.
   *
   * @throws AuthError when a request with the same token would be refused now
   */
  recheck(auth: Auth, nowMs: number): void {
    if (!this.hasKey) this.#refuseKey();
    if (!this.#accepted || !isCurrent(this.#accepted.verified, nowMs)) this.#policy.verifyClaims(this.claims, this.key);
    this.#recheckGeneration(auth);
  }

  #recheckGeneration({ clientId, generation }: Auth): void {
    if (generation !== undefined) this.context.generations?.recheck(clientId, generation, this.#accepted?.stamped);
  }

  /** A set that is stale, after a pause of the process, does not say that the key was removed: the next fetch will. */
  #refuseKey(): void {
    const { state } = this.context.keys.status();
    if (state === 'fresh')
      throw new AuthError('unknown_key', { privateDetail: 'the key was removed from the key set' });
    if (state === 'unavailable') throw new AuthError('keys_unavailable');
  }
}

const tokenOfAuth = new WeakMap<Auth, TrustedToken>();

/** The token with which any gate has accepted a caller. */
export function originOf(auth: Auth): TrustedToken | undefined {
  return tokenOfAuth.get(auth);
}

/** Whether the times of a token still allow it (RFC 7519 sections 4.1.4 and 4.1.5). */
function isCurrent({ acceptedFromMs, acceptedUntilMs }: ReturnType<ClaimsCheck>, nowMs: number): boolean {
  return acceptedFromMs <= nowMs && nowMs < acceptedUntilMs;
}
