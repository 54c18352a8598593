import { AuthError } from '../core/errors';
import type { Clock } from '../core/clock';
import type { Logger } from '../core/logger';
import type { GateStatus } from '../core/gate-status';
import { isObject } from '../core/objects';
import { usesDpop, type TokenRequest } from '../token/bearer';
import { clientUnit, type Caller } from '../token/fair-queue';
import type { SignatureVerifier } from '../token/signature';
import { REGISTERED_CONFIRMATIONS } from '../token/claims';
import type { JsonObject } from '../net/strict-json';

/**
 * One way in which a caller proves that it holds the key that its token is bound to: what `dpop()` and `mtls()` return. An object
 * that is written by hand does not fit the type.
 */
export class Possession {
  /** Member of `cnf` that names the key (RFC 7800 section 3.1): tokens with it are accepted with this proof only. */
  readonly confirmation!: string;
  /**
   * Called once for each gate. Its own challenge, where tokens come with another scheme than Bearer.
   *
   * @throws TypeError when an option is missing
   * @internal
   */
  readonly challenge!: (gate: { readonly resource: string | undefined }) => PossessionChallenge | undefined;
  /**
   * Checks the proof of a request whose token is good. Throws, or rejects with, an AuthError.
   *
   * @returns the DPoP nonce that the response should carry (RFC 9449 section 8.2)
   * @internal
   */
  readonly verify!: (proof: BoundRequest) => string | undefined | Promise<string | undefined>;
  /**
   * What it remembers, for the status of its gates.
   *
   * @internal
   */
  readonly status?: () => GateStatus['usedProofs'];
  /** Makes the type opaque: no object literal can have it. */
  protected readonly isOpaque = true;

  /** @internal */
  constructor(members: Pick<Possession, keyof Possession>) {
    Object.assign(this, members);
  }
}

/** What a challenge says about a scheme of its own (RFC 9449 section 7.1). */
export interface PossessionChallenge {
  readonly scheme: 'DPoP';
  /** Accepted algorithms of proofs. */
  readonly algorithms: readonly string[];
}

/** A request with a token that is bound to a key. */
export interface BoundRequest {
  readonly request: TokenRequest;
  readonly token: string;
  /** What the token names as its key. */
  readonly bound: string;
  /** Counts as the client of the token. */
  readonly caller: Caller;
  /** Does not use up the proof, because another gate decides. */
  readonly isTrial: boolean;
  readonly gate: PossessionGate;
}

/** What a gate has for all of its proofs. */
interface PossessionGate {
  readonly resource: string | undefined;
  readonly clock: Clock;
  readonly clockToleranceMs: number;
  readonly signatures: SignatureVerifier;
  readonly logger: Logger;
}

/** Checks that callers hold the keys that their tokens are bound to. */
export class PossessionVerifier {
  readonly #kinds: readonly Possession[];
  readonly #isRequired: boolean;
  readonly #gate: PossessionGate;

  constructor(settings: PossessionSettings, signatures: SignatureVerifier) {
    const { possession, possessionRequired, issuers, clock, logger, resource } = settings;
    const clockToleranceMs = Math.max(...issuers.map((issuer) => issuer.clockToleranceMs));
    // Proofs for one request come last: one that is used up is of no use for another attempt.
    const isOfRequest = (kind: Possession): number => Number(kind.challenge({ resource }) !== undefined);
    this.#kinds = [...possession].sort((a, b) => isOfRequest(a) - isOfRequest(b));
    this.#isRequired = possessionRequired;
    this.#gate = { resource, clock, clockToleranceMs, signatures, logger };
  }

  status(): GateStatus['usedProofs'] {
    return this.#kinds.map((kind) => kind.status?.()).find((status) => status !== undefined);
  }

  /**
   * Checks that a token is bound where that is required: what can be said about it without a request.
   *
   * @throws AuthError `binding_required`
   */
  requireBinding({ cnf }: JsonObject): void {
    if (this.#isRequired && confirmationsOf(cnf).length === 0) throw new AuthError('binding_required');
  }

  /**
   * Checks the proofs of a request whose token is good (RFC 9449 section 7, RFC 8705 section 3). Rejects with an AuthError
   * `sender_constrained`, `binding_required`, `wrong_binding`, `invalid_dpop_proof`, `dpop_nonce_required`,
   * `too_many_proofs` or `replay_store_unavailable`.
   *
   * @param isTrial - does not remember the proof, because another gate decides
   * @returns the nonce that the response should carry
   */
  async verify(
    request: TokenRequest,
    token: string,
    { issuer, clientId, claims }: { readonly issuer: string; readonly clientId: string; readonly claims: JsonObject },
    caller?: Caller,
    isTrial = false,
  ): Promise<string | undefined> {
    this.requireBinding(claims);
    const confirmation = isObject(claims['cnf']) ? claims['cnf'] : {};
    if (usesDpop(request) && confirmation['jkt'] === undefined) throw new AuthError('binding_required');
    const holder = { ...caller, client: clientUnit(issuer, clientId) };
    let nonce: string | undefined;
    for (const kind of this.#kinds) {
      const bound = confirmation[kind.confirmation];
      // That each is a string was checked with the claims.
      if (bound === undefined) continue;
      const proof = { request, token, bound: bound as string, caller: holder, isTrial, gate: this.#gate };
      nonce = (await kind.verify(proof)) ?? nonce;
    }
    return nonce;
  }
}

interface PossessionSettings extends Pick<PossessionGate, 'resource' | 'clock' | 'logger'> {
  readonly possession: readonly Possession[];
  /** A token has to be bound, in any of these ways (FAPI 2.0). */
  readonly possessionRequired: boolean;
  readonly issuers: readonly Pick<PossessionGate, 'clockToleranceMs'>[];
}

/** The members of `cnf` that bind a token to a key, each of which has to be proven. */
export function confirmationsOf(cnf: unknown): readonly string[] {
  return isObject(cnf) ? Object.keys(cnf).filter((name) => REGISTERED_CONFIRMATIONS.has(name)) : [];
}
