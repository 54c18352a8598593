import { LRUCache } from 'lru-cache';
import { AuthError } from '../core/errors';
import { MAX_DELAY_MS, withTimeLimit } from '../core/clock';
import type { GateStatus, IssuerStatus } from '../core/gate-status';
import type { MetricOf } from '../core/metrics';
import { NO_OPTIONS } from '../core/objects';
import { describe } from '../core/options';
import { addGauges } from '../core/telemetry';
import { authenticateOptions, readSettings } from '../settings/settings';
import type { Caller } from '../token/fair-queue';
import { isJwsShaped, parseToken } from '../token/jws';
import type { UnverifiedToken } from '../token/jws';
import type { VerificationKey } from '../token/keys/key-set';
import { PossessionVerifier } from '../token/possession';
import { SignatureVerifier } from '../token/signature';
import type { ClaimsVerifier } from '../token/verify';
import { openIssuer } from './issuer';
import type { IssuerContext } from './issuer';
import type { Auth, AuthenticateOptions } from './options';
import { readGateOptions } from './read-options';
import type { GateSettings } from './read-options';

/** Claims that a signature or the issuer's response vouches for. */
interface TrustedToken {
  readonly context: IssuerContext;
  readonly policy: IssuerContext['policy'];
  readonly claims: Auth['claims'];
  /** Absent in an opaque token. */
  readonly key?: VerificationKey;
  /** Absent while the claims are refused. */
  accepted?: { readonly verified: ReturnType<ClaimsVerifier>; readonly auth: Auth };
}

interface OpaqueIssuer {
  readonly context: IssuerContext;
  readonly introspection: NonNullable<IssuerContext['introspection']>;
}

/** Verifies tokens of all issuers of a gate: the gate without HTTP. */
export class GateVerifier {
  readonly settings: GateSettings;
  /** Absent where no kind of proof is listed. */
  readonly possession: PossessionVerifier | undefined;
  readonly #issuers: readonly IssuerContext[];
  readonly #byIssuer: ReadonlyMap<unknown, IssuerContext>;
  /** The issuer that is asked about opaque tokens. */
  readonly #opaque: OpaqueIssuer | undefined;
  readonly #endGauges: () => void;
  readonly #cache: TokenCache<TrustedToken> | undefined;
  /** What is known about a token from its issuer's response: the same as long as the response is cached. */
  readonly #byResponse = new WeakMap<object, TrustedToken>();

  constructor(settings: GateSettings) {
    const signatures = new SignatureVerifier();
    this.settings = settings;
    this.possession = settings.possession.length > 0 ? new PossessionVerifier(settings, signatures) : undefined;
    this.#issuers = settings.issuers.map((issuer) => openIssuer(issuer, signatures, settings));
    this.#byIssuer = new Map(this.#issuers.map((context) => [context.issuer, context]));
    [this.#opaque] = this.#issuers.flatMap((context) => {
      return context.introspection ? [{ context, introspection: context.introspection }] : [];
    });
    this.#endGauges = addGauges(this.#readGauges);
    this.#cache = settings.verifiedTokens > 0 ? new TokenCache(settings.verifiedTokens) : undefined;
  }

  /**
   * Returns the caller of a token that was verified before, after checking again what changes: its key, its times, its
   * generation. `undefined`: verify it.
   *
   * @throws AuthError when the token is no longer accepted
   */
  verifyCached(token: string): Auth | undefined {
    const cached = this.#cachedToken(token);
    if (!cached) return undefined;
    const { context, accepted } = cached;
    if (!accepted || !isCurrent(accepted.verified, this.settings.clock())) {
      return context.generations?.settled() ? undefined : accept(cached);
    }
    const { auth } = accepted;
    if (auth.generation !== undefined) context.generations?.recheck(auth.clientId, auth.generation);
    return auth;
  }

  #cachedToken(token: string): TrustedToken | undefined {
    const opaque = this.#opaque;
    const isOpaque = opaque !== undefined && this.isIntrospected(token);
    if (isOpaque) {
      const response = opaque.introspection.get(token);
      return response && this.#introspectedToken(opaque, response);
    }
    const cached = this.#cache?.get(token);
    if (!cached?.key || cached.context.keys.has(cached.key)) return cached;
    this.#cache?.delete(token);
    return undefined;
  }

  /**
   * Verifies a token: structure, header, key, signature, claims, generation; an opaque one by introspection instead of
   * its signature. Rejects with the AuthError of the first check that fails.
   *
   * @param caller - takes turns with others where introspection or signatures have to wait
   */
  async verify(token: string, caller?: Caller): Promise<Auth> {
    const opaque = this.#opaque;
    const trusted =
      opaque && this.isIntrospected(token)
        ? this.#introspectedToken(opaque, await opaque.introspection.introspect(token, caller))
        : await this.#verifyJws(parseToken(token), caller);
    // Before the first read of the generations has ended, a token waits for it.
    await trusted.context.generations?.settled();
    return accept(trusted);
  }

  async #verifyJws(unverified: UnverifiedToken, caller: Caller | undefined): Promise<TrustedToken> {
    const context = this.#contextFor(unverified);
    const { verifier, policy } = context;
    const key = await verifier.verifySignature(unverified, caller);
    const verified = { context, policy, claims: unverified.claims, key };
    // Refused claims are cached too: repeating an expired token costs no signature check each time.
    this.#cache?.set(unverified, verified);
    return verified;
  }

  /** With one issuer its keys decide, so that the signature is checked before any claim; with several, `iss` selects. */
  #contextFor({ claims }: UnverifiedToken): IssuerContext {
    const context = this.#issuers.length === 1 ? this.#issuers[0] : this.#byIssuer.get(claims['iss']);
    if (!context)
      throw new AuthError('wrong_issuer', {
        privateDetail: `no issuer of this gate is ${describe(claims['iss'], 200)}`,
      });
    return context;
  }

  #introspectedToken({ context, introspection }: OpaqueIssuer, claims: Auth['claims']): TrustedToken {
    const known = this.#byResponse.get(claims) ?? { context, policy: introspection, claims };
    this.#byResponse.set(claims, known);
    return known;
  }

  /**
   * Checks again what changes about a caller that was accepted: the key of its token, its times, its generation. An opaque
   * token is not asked about again.
   *
   * @throws AuthError when a request with the same token would be refused now
   * @throws TypeError when this gate has not accepted it
   */
  recheck(auth: Auth): void {
    const token = origins.get(auth);
    if (!token || this.#byIssuer.get(auth.issuer) !== token.context) {
      throw new TypeError('hold(): expected a caller that this gate has accepted, such as req.auth');
    }
    const { context, key, policy, accepted } = token;
    if (key && !context.keys.has(key)) {
      const { state } = context.keys.status();
      if (state === 'fresh')
        throw new AuthError('unknown_key', { privateDetail: 'the key was removed from the key set' });
      // Neither: after a pause of the process, a fetch will tell.
      if (state === 'unavailable') throw new AuthError('keys_unavailable');
    }
    if (!accepted || !isCurrent(accepted.verified, this.settings.clock())) policy.verifyClaims(token.claims);
    if (auth.generation !== undefined) context.generations?.recheck(auth.clientId, auth.generation);
  }

  /** Calls `listener` with the client whose floor has risen. */
  onFloor(listener: (issuer: string, clientId: string) => void): void {
    for (const { issuer, generations } of this.#issuers) {
      generations?.onFloor((clientId) => listener(issuer, clientId));
    }
  }

  /** Whether a known key of the one issuer has signed a token, of whatever type. Decides nothing. */
  async isSigned(token: string): Promise<boolean> {
    try {
      const unverified = parseToken(token);
      return await this.#contextFor(unverified).verifier.isSigned(unverified);
    } catch {
      return false;
    }
  }

  /**
   * Whether the issuer is asked about this token. Three parts are always verified as a JWS: no spelling of one is decided by
   * introspection.
   */
  isIntrospected(token: string): boolean {
    return this.#opaque !== undefined && !isJwsShaped(token);
  }

  /** Resolves once keys and generations are available; rejects if that takes longer than `limitMs`. */
  async ready(limitMs?: number): Promise<void> {
    const sources = this.#issuers.flatMap(({ keys, generations }) => (generations ? [keys, generations] : [keys]));
    const available = Promise.all(sources.map((source) => source.ready()));
    if (limitMs === undefined) return void (await available);
    // The timers of a gate keep no process alive; a caller that waits for one of them does.
    const keepAlive = setInterval(() => {}, MAX_DELAY_MS);
    try {
      await withTimeLimit(available, limitMs, this.settings.schedule, () => notReady(limitMs, this.status()));
    } finally {
      clearInterval(keepAlive);
    }
  }

  status(): GateStatus {
    const issuers = this.#issuers.map(({ issuer, keys, generations }) => {
      return { issuer, keys: keys.status(), ...(generations && { generations: generations.status() }) };
    });
    return { ready: issuers.every(isReady), issuers };
  }

  readonly #readGauges = () => this.#gauges();

  *#gauges(): Generator<ReturnType<typeof gauge>> {
    for (const { issuer, keys, introspection, generations } of this.#issuers) {
      const { keys: count, ageMs } = keys.status();
      yield gauge('tillgate.keys.count', issuer, count);
      if (ageMs !== undefined) yield gauge('tillgate.keys.age', issuer, ageMs / 1000);
      if (introspection) yield gauge('tillgate.introspection.waiting', issuer, introspection.waiting());
      if (!generations) continue;
      const { floors, ageMs: stalenessMs, silentMs } = generations.status();
      yield gauge('tillgate.generations.floors', issuer, floors);
      if (stalenessMs !== undefined) yield gauge('tillgate.generations.staleness', issuer, stalenessMs / 1000);
      if (silentMs !== undefined) yield gauge('tillgate.generations.silence', issuer, silentMs / 1000);
    }
  }

  async close(): Promise<void> {
    this.#endGauges();
    for (const { keys } of this.#issuers) keys.close();
    this.#opaque?.introspection.close();
    for (const { generations } of this.#issuers) await generations?.close();
  }
}

function gauge(name: MetricOf<'gauge'>, issuer: string, value: number) {
  return { name, value, attributes: { 'tillgate.issuer': issuer } };
}

/** Checks the claims, then the generation: only a token that passed every other check may raise a floor. Then reads the scopes. */
function accept(cached: TrustedToken): Auth {
  const { context, policy } = cached;
  const verified = policy.verifyClaims(cached.claims);
  const { issuer, clientId, subject, tokenId, expiresAtMs, claims } = verified;
  const generation = context.generations?.verify(clientId, claims);
  const scopes = Object.freeze(policy.readScopes(claims));
  const auth = Object.freeze({ issuer, clientId, subject, tokenId, scopes, generation, expiresAtMs, claims });
  cached.accepted = { verified, auth };
  origins.set(auth, cached);
  return auth;
}

/** The token that a caller was accepted with. */
const origins = new WeakMap<Auth, TrustedToken>();

/** Whether the times of a token still allow it (RFC 7519 sections 4.1.4 and 4.1.5). */
function isCurrent({ acceptedFromMs, acceptedUntilMs }: ReturnType<ClaimsVerifier>, nowMs: number): boolean {
  return acceptedFromMs <= nowMs && nowMs < acceptedUntilMs;
}

function isReady({ keys, generations }: IssuerStatus): boolean {
  const haveKeys = keys.state === 'fresh' || keys.state === 'stale';
  return haveKeys && (generations === undefined || generations.source === 'none' || generations.source === 'fresh');
}

/** Names what a gate has not got yet, and why. */
function notReady(limitMs: number, { issuers }: GateStatus): Error {
  const missing = issuers.flatMap(({ issuer, keys, generations }) => [
    ...(keys.state === 'starting' ? [`the keys of ${issuer}${because(keys)}`] : []),
    ...(generations?.source === 'starting' ? [`the generations of ${issuer}${because(generations)}`] : []),
  ]);
  return new Error(`the gate is not ready after ${limitMs} ms: it has not read ${missing.join(' and ')}`);
}

function because({ lastError }: { readonly lastError?: string }): string {
  return lastError === undefined ? '' : ` (${lastError})`;
}

/** Traces of first uses: a power of two, 256 KB. */
const TRACES = 65_536;
/** Characters at the end of a token, all of its signature, by which it is found: 192 bits. */
const ENDING = 32;

/**
 * Values by token, the least recently used ones leave first; the whole token is compared. Caching a token that is used once
 * would evict one that is used again, so a caller with a new token for each request evicts no other caller's.
 */
export class TokenCache<Value extends object> {
  // Keyed by their endings: hashing a whole token takes longer than comparing it.
  readonly #entries: LRUCache<string, { readonly token: string; readonly value: Value }>;
  // A lost trace costs one more verification, a colliding one caches one use too early: neither returns a wrong value.
  readonly #traces = new Uint32Array(TRACES);

  /** @param max - entries, at least 1 */
  constructor(max: number) {
    this.#entries = new LRUCache({ max });
  }

  get(token: string): Value | undefined {
    const entry = this.#entries.get(token.slice(-ENDING), NO_OPTIONS);
    return entry?.token === token ? entry.value : undefined;
  }

  /** Keeps the value of a token that is set for the second time; the first time leaves a trace only. */
  set({ raw, signature }: UnverifiedToken, value: Value): void {
    // The signature has been verified: a caller cannot choose its first bytes.
    const slot = signature.readUInt32BE(0) % TRACES;
    const trace = signature.readUInt32BE(4);
    if (this.#traces[slot] === trace) this.#entries.set(raw.slice(-ENDING), { token: raw, value }, NO_OPTIONS);
    this.#traces[slot] = trace;
  }

  delete(token: string): void {
    this.#entries.delete(token.slice(-ENDING));
  }
}

/** Opens a gate. Without options the `TILLGATE_*` variables are read. */
export function openGate(options?: AuthenticateOptions): GateVerifier {
  return new GateVerifier(readGateOptions(options === undefined ? authenticateOptions(readSettings()) : options));
}

const gates = new WeakMap<object, GateVerifier>();

/** Remembers which gate decides in a middleware. */
export function rememberGate(middleware: object, gate: GateVerifier): void {
  gates.set(middleware, gate);
}

/** The gate of a middleware that `authenticate()` made; `undefined` for anything else. */
export function gateOf(middleware: object): GateVerifier | undefined {
  return gates.get(middleware);
}
