import { ActivityPublisher } from '../core/status';
import { MAX_DELAY_MS, withTimeLimit } from '../core/clock';
import { AuthError } from '../core/errors';
import type { GateStatus, IssuerStatus } from '../core/status';
import { describe } from '../core/options';
import { clientUnit } from '../token/fair-queue';
import type { Caller } from '../token/fair-queue';
import { introspectedClaimsCheck, presetOfResponses } from '../token/introspected-claims';
import { introspectionEndpoint, introspector } from '../token/introspection';
import { describeNoToken, isJwsShaped, parseToken } from '../token/jws';
import type { UnverifiedToken } from '../token/jws';
import { PossessionVerifier } from '../possession/possession';
import { scopeReader } from '../token/scopes';
import { SignatureVerifier } from '../token/signature';
import { openIssuer, originOf, TrustedToken } from './issuer';
import type { IssuerContext } from './issuer';
import type { Auth } from './options';
import type { GateSettings, IssuerSettings } from './read-options';
import { TokenCache } from './token-cache';

/** Verifies tokens of all issuers of a gate: the gate without HTTP. */
export class GateVerifier {
  readonly settings: GateSettings;
  /** Absent where no kind of proof is listed. */
  readonly possession: PossessionVerifier | undefined;
  readonly #issuers: readonly IssuerContext[];
  readonly #jwts: JwtVerifier;
  /** Absent where opaque tokens are refused. */
  readonly #opaque: OpaqueVerifier | undefined;

  constructor(settings: GateSettings) {
    const signatures = new SignatureVerifier();
    const contexts = settings.issuers.map((issuer) => openIssuer(issuer, signatures, settings));
    this.settings = settings;
    this.possession = settings.possession.length > 0 ? new PossessionVerifier(settings, signatures) : undefined;
    this.#issuers = contexts;
    this.#jwts = new JwtVerifier(contexts, settings);
    [this.#opaque] = settings.issuers.flatMap((issuer, index) => {
      return issuer.opaque ? [new OpaqueVerifier(contexts[index]!, issuer, issuer.opaque, settings)] : [];
    });
  }

  /** The verifier of a token's kind. Three parts are always verified as a JWS: no spelling of one is decided by introspection. */
  verifierOf(token: string): Verifier {
    const isOpaque = this.#opaque && !isJwsShaped(token) && describeNoToken(token) === undefined;
    return isOpaque && this.#opaque ? this.#opaque : this.#jwts;
  }

  /**
   * Checks again what changes about a caller that was accepted: the key of its token, its times, its generation. An opaque
   * token is not asked about again.
   *
   * @throws AuthError when a request with the same token would be refused now
   * @throws TypeError when this gate has not accepted it
   */
  recheck(auth: Auth): void {
    const token = originOf(auth);
    if (!token || !this.#issuers.includes(token.context)) {
      throw new TypeError('hold(): expected a caller that this gate has accepted, such as req.auth');
    }
    token.recheck(auth, this.settings.clock());
  }

  /** Whether it asks the issuer about its tokens. */
  isIntrospecting(verifier: Verifier): boolean {
    return verifier === this.#opaque;
  }

  /** Whether a known key has signed a token, of whatever type. Decides nothing. */
  isSigned(token: string): Promise<boolean> {
    return this.#jwts.isSigned(token);
  }

  /** Counts a request of a client that was refused as `superseded`. */
  noteSuperseded({ issuer, clientId }: NonNullable<AuthError['client']>): void {
    const { generations } = this.#issuers.find((each) => each.issuer === issuer) ?? {};
    if (clientId !== undefined) generations?.noteSuperseded(clientId);
  }

  /** Calls `listener` with the client whose floor has risen. */
  onFloor(listener: (issuer: string, clientId: string) => void): void {
    for (const { issuer, generations } of this.#issuers) {
      generations?.onFloor((clientId) => listener(issuer, clientId));
    }
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
    const issuers = this.#issuers.map(({ issuer, preset, keys, generations }) => {
      return { issuer, preset, keys: keys.status(), ...(generations && { generations: generations.status() }) };
    });
    const usedProofs = this.possession?.status();
    return { ready: issuers.every(isReady), issuers, ...(usedProofs && { usedProofs }) };
  }

  async close(): Promise<void> {
    this.#opaque?.close();
    await Promise.all(this.#issuers.map((context) => context.close()));
  }
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

const gates = new WeakMap<object, GateVerifier>();

/** Remembers which gate decides in a middleware. */
export function rememberGate(middleware: object, gate: GateVerifier): void {
  gates.set(middleware, gate);
}

/** The gate of a middleware that `authenticate()` made; `undefined` for anything else. */
export function gateOf(middleware: object): GateVerifier | undefined {
  return gates.get(middleware);
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

/** Verifies JWTs (RFC 7519) by the keys of their issuers. */
class JwtVerifier implements Verifier {
  readonly #clock: GateSettings['clock'];
  readonly #issuers: readonly IssuerContext[];
  readonly #byIssuer: ReadonlyMap<unknown, IssuerContext>;
  readonly #cache: TokenCache<TrustedToken> | undefined;

  constructor(issuers: readonly IssuerContext[], { clock, verifiedTokens }: GateSettings) {
    this.#clock = clock;
    this.#issuers = issuers;
    this.#byIssuer = new Map(issuers.map((context) => [context.issuer, context]));
    this.#cache = verifiedTokens > 0 ? new TokenCache(verifiedTokens) : undefined;
  }

  known(raw: string): Auth | undefined {
    const token = this.#cache?.get(raw);
    if (!token) return undefined;
    if (token.hasKey) return token.known(this.#clock());
    this.#cache?.delete(raw);
    return undefined;
  }

  verify(raw: string, caller?: Caller): Promise<Auth> {
    const unverified = parseToken(raw);
    const context = this.#contextFor(unverified);
    return context.verifier.verifySignature(unverified, caller).then((key) => {
      const token = new TrustedToken(context, context.policy, unverified.claims, key);
      // Refused claims are cached too: repeating an expired token costs no signature check each time.
      this.#cache?.set(unverified, token);
      return token.accept();
    });
  }

  /** Whether a known key has signed a token, of whatever type. Decides nothing. */
  async isSigned(raw: string): Promise<boolean> {
    try {
      const unverified = parseToken(raw);
      await this.#contextFor(unverified).verifier.requireSigned(unverified);
      return true;
    } catch {
      return false;
    }
  }

  /** With one issuer its keys decide, so that the signature is checked before any claim; with several, `iss` selects. */
  #contextFor({ claims }: UnverifiedToken): IssuerContext {
    const context = this.#issuers.length === 1 ? this.#issuers[0] : this.#byIssuer.get(claims['iss']);
    if (context) return context;
    throw new AuthError('wrong_issuer', { privateDetail: `no issuer of this gate is ${describe(claims['iss'], 200)}` });
  }
}

/** Responses are kept: 5,000 of them at most. Metadata is within this too. */
const MAX_RESPONSE_BYTES = 65_536;

/** Verifies opaque tokens by asking their issuer (RFC 7662). */
class OpaqueVerifier implements Verifier {
  readonly #clock: GateSettings['clock'];
  readonly #introspector: ReturnType<typeof introspector<TrustedToken>>;
  readonly #activity: ActivityPublisher<'introspection'>;

  constructor(
    context: IssuerContext,
    settings: IssuerSettings,
    opaque: NonNullable<IssuerSettings['opaque']>,
    dependencies: GateSettings,
  ) {
    const { issuer, authUrl, checkUrl, scopes, generationClaim, clientIds } = settings;
    // Neither a floor nor the option needs the name of a client.
    const issueTimeCanBeAbsent = generationClaim === undefined;
    const preset = presetOfResponses(settings.preset, issueTimeCanBeAbsent && clientIds === undefined);
    const rules = { ...settings, preset, audiences: settings.opaqueAudiences, issueTimeCanBeAbsent };
    const policy = {
      verifyClaims: introspectedClaimsCheck(rules, dependencies.clock),
      readScopes: scopeReader(preset.scopeClaims, scopes),
      preset,
    };
    const document = { issuer, authUrl, checkUrl, maxBytes: MAX_RESPONSE_BYTES };
    const ask = introspectionEndpoint({ ...dependencies, ...document, ...opaque });
    this.#clock = dependencies.clock;
    this.#activity = new ActivityPublisher('introspection', issuer, () => ({ waiting: this.#introspector.waiting() }));
    this.#introspector = introspector({
      ...dependencies,
      issuer,
      cacheMs: opaque.cacheMs,
      askAbout: (token, signal) => this.#activity.during(() => ask(token, signal)),
      trust: (claims) => new TrustedToken(context, policy, claims),
      clientOf: ({ client_id: id }) => (typeof id === 'string' ? clientUnit(issuer, id) : undefined),
    });
    this.#activity.publish('opened');
  }

  known(token: string): Auth | undefined {
    return this.#introspector.get(token)?.known(this.#clock());
  }

  async verify(token: string, caller?: Caller): Promise<Auth> {
    return (await this.#introspector.introspect(token, caller)).accept();
  }

  /** Ends the open calls. */
  close(): void {
    this.#introspector.close();
    this.#activity.publish('closed');
  }
}
