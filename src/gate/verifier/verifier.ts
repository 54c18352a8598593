import { MAX_DELAY_MS, withTimeLimit } from '../core/clock';
import { AuthError } from '../core/errors';
import type { GateStatus, IssuerStatus } from '../core/gate-status';
import { describe } from '../core/words';
import type { Caller } from '../token/fair-queue';
import { describeNoToken, isJwsShaped, parseToken, type UnverifiedToken } from '../token/jws';
import type * as Proofs from '../possession/possession';
import { SignatureVerifier } from '../token/signature';
import { openIssuer, originOf, TrustedToken, type IssuerContext, type Verifier } from './issuer';
import type * as Introspection from './opaque-verifier';
import type { Auth } from './options';
import type { GateSettings } from './read-options';
import { TokenCache } from './token-cache';

export type { Verifier } from './issuer';

/* eslint-disable @typescript-eslint/no-require-imports -- loaded by gates with these options */
const introspection = () => require('./opaque-verifier') as typeof Introspection;
const proofs = () => require('../possession/possession') as typeof Proofs;

/** Verifies tokens of all issuers of a gate: the gate without HTTP. */
export class GateVerifier {
  readonly settings: GateSettings;
  /** Absent where no kind of proof is listed. */
  readonly possession: Proofs.PossessionVerifier | undefined;
  readonly #issuers: readonly IssuerContext[];
  readonly #jwts: JwtVerifier;
  /** Absent where opaque tokens are refused. */
  readonly #opaque: ReturnType<typeof Introspection.opaqueVerifier> | undefined;

  constructor(settings: GateSettings) {
    const signatures = new SignatureVerifier();
    const contexts = settings.issuers.map((issuer) => openIssuer(issuer, signatures, settings));
    this.settings = settings;
    this.possession =
      settings.possession.length > 0 ? new (proofs().PossessionVerifier)(settings, signatures) : undefined;
    this.#issuers = contexts;
    this.#jwts = new JwtVerifier(contexts, settings);
    [this.#opaque] = settings.issuers.flatMap((issuer, index) => {
      return issuer.opaque ? [introspection().opaqueVerifier(contexts[index]!, issuer, issuer.opaque, settings)] : [];
    });
  }

  /** The verifier of a token's kind. Three parts are always verified as a JWS: no spelling of one is decided by introspection. */
  verifierOf(token: string): Verifier {
    const isOpaque = this.#opaque && !isJwsShaped(token) && describeNoToken(token) === undefined;
    return (isOpaque && this.#opaque) || this.#jwts;
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
