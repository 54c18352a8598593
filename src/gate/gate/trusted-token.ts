import { AuthError, identify } from '../core/errors';
import type { Caller } from '../token/fair-queue';
import type { VerificationKey } from '../token/keys/key-set';
import type { JsonObject } from '../token/strict-json';
import type { ClaimsCheck } from '../token/verify';
import type { ClaimsPolicy, IssuerContext } from './issuer';
import type { Auth } from './options';

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
  /**
   * Checks again what changes about a caller that was accepted: the key of its token, its times, its generation.
   *
   * @returns false where this verifier has not accepted it
   * @throws AuthError when a request with the same token would be refused now
   */
  recheck(auth: Auth): boolean;
}

/** A token whose claims a signature or the issuer's response vouches for. They may still be refused. */
export class TrustedToken {
  readonly claims: JsonObject;
  /** The key that has signed it; absent in an opaque token. */
  readonly key: VerificationKey | undefined;
  readonly context: IssuerContext;
  readonly #policy: ClaimsPolicy;
  /** Absent while the claims are refused. */
  #accepted: { readonly verified: ReturnType<ClaimsCheck>; readonly auth: Auth } | undefined;

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
      if (auth.generation !== undefined) generations?.recheck(auth.clientId, auth.generation);
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
      const verified = this.#policy.verifyClaims(this.claims);
      const { issuer, clientId, subject, tokenId, expiresAtMs, claims } = verified;
      const generation = this.context.generations?.verify(clientId, claims);
      const scopes = Object.freeze(this.#policy.readScopes(claims));
      const auth = Object.freeze({ issuer, clientId, subject, tokenId, scopes, generation, expiresAtMs, claims });
      this.#accepted = { verified, auth };
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
    const ids = this.#policy.clientIdClaims.map((name) => this.claims[name]);
    return { issuer, clientId: ids.find((id) => typeof id === 'string') };
  }

  /**
   * Checks again what changes about a caller that it was accepted for: the key, the times, the generation.
   *
   * @throws AuthError when a request with the same token would be refused now
   */
  recheck(auth: Auth, nowMs: number): void {
    if (!this.hasKey) this.#refuseKey();
    if (!this.#accepted || !isCurrent(this.#accepted.verified, nowMs)) this.#policy.verifyClaims(this.claims);
    if (auth.generation !== undefined) this.context.generations?.recheck(auth.clientId, auth.generation);
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
