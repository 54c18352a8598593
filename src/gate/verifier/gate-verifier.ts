import { MAX_DELAY_MS, withTimeLimit } from '../core/clock';
import type { AuthError } from '../core/errors';
import type { GateStatus, IssuerStatus } from '../core/gate-status';
import { describeNoToken, isJwsShaped } from '../token/jws';
import type * as Proofs from '../possession/possession';
import { SignatureVerifier } from '../token/signature';
import { openIssuer, type IssuerContext } from './issuer';
import { JwtVerifier } from './jwt-verifier';
import type * as Introspection from './opaque-verifier';
import type { Auth } from './options';
import type { GateSettings } from './read-options';
import { isSigned } from './steps';
import { originOf } from './trusted-token';
import type { Verifier } from './verifier';

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
    this.#jwts = new JwtVerifier(contexts, settings.verifiedTokens);
    const context = contexts.find((each) => each.settings.opaque);
    const { opaque } = context?.settings ?? {};
    this.#opaque = context && opaque && introspection().opaqueVerifier(context, opaque, settings);
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
    token.recheck(auth);
  }

  /** Whether it asks the issuer about its tokens. */
  isIntrospecting(verifier: Verifier): boolean {
    return verifier === this.#opaque;
  }

  /** Whether a known key has signed a token, of whatever type. Decides nothing. */
  isSigned(token: string): Promise<boolean> {
    return isSigned(token, this.#issuers);
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
    const issuers = this.#issuers.map(({ issuer, settings, keys, generations }) => {
      return {
        issuer,
        preset: settings.presetChoice,
        keys: keys.status(),
        ...(generations && { generations: generations.status() }),
      };
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
