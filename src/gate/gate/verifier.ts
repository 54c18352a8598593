import { MAX_DELAY_MS, withTimeLimit } from '../core/clock';
import type { GateStatus, IssuerStatus } from '../core/gate-status';
import type { Caller } from '../token/fair-queue';
import { isJwsShaped } from '../token/jws';
import { PossessionVerifier } from '../token/possession';
import { SignatureVerifier } from '../token/signature';
import { openIssuer } from './issuer';
import type { IssuerContext } from './issuer';
import { JwtVerifier } from './jwt-verifier';
import { OpaqueVerifier } from './opaque-verifier';
import type { Auth } from './options';
import type { GateSettings } from './read-options';
import type { Verifier } from './trusted-token';

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

  /** {@inheritDoc Verifier.known} */
  known(token: string): Auth | undefined {
    return this.#verifierOf(token).known(token);
  }

  /** {@inheritDoc Verifier.verify} */
  verify(token: string, caller?: Caller): Promise<Auth> {
    return this.#verifierOf(token).verify(token, caller);
  }

  /**
   * Checks again what changes about a caller that was accepted: the key of its token, its times, its generation. An opaque
   * token is not asked about again.
   *
   * @throws AuthError when a request with the same token would be refused now
   * @throws TypeError when this gate has not accepted it
   */
  recheck(auth: Auth): void {
    if (this.#jwts.recheck(auth) || this.#opaque?.recheck(auth)) return;
    throw new TypeError('hold(): expected a caller that this gate has accepted, such as req.auth');
  }

  #verifierOf(token: string): Verifier {
    return this.#opaque && this.isIntrospected(token) ? this.#opaque : this.#jwts;
  }

  /**
   * Whether the issuer is asked about this token. Three parts are always verified as a JWS: no spelling of one is decided by
   * introspection.
   */
  isIntrospected(token: string): boolean {
    return this.#opaque !== undefined && !isJwsShaped(token);
  }

  /** Whether a known key has signed a token, of whatever type. Decides nothing. */
  isSigned(token: string): Promise<boolean> {
    return this.#jwts.isSigned(token);
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
    const issuers = this.#issuers.map(({ issuer, keys, generations }) => {
      return { issuer, keys: keys.status(), ...(generations && { generations: generations.status() }) };
    });
    return { ready: issuers.every(isReady), issuers };
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
