import { AuthError, identify } from '../core/errors';
import type { JsonObject } from '../net/strict-json';
import { clientNamedIn, type TypedClaims } from '../token/claims';
import type { VerificationKey } from '../token/keys/key-set';
import type { ClaimsPolicy, IssuerContext } from './issuer';
import type { Auth } from './options';
import { checkClaims, STEPS } from './steps';

/** What a cached token keeps of its claims, besides its `auth`. */
type AcceptedTimes = Pick<TypedClaims, 'acceptedFromMs' | 'acceptedUntilMs'>;

/** A token whose claims a signature or the issuer's response vouches for. They may still be refused. */
export class TrustedToken {
  readonly claims: JsonObject;
  /** The key that has signed it; absent in an opaque token. */
  readonly key: VerificationKey | undefined;
  readonly context: IssuerContext;
  readonly #policy: ClaimsPolicy;
  /** Absent while the claims are refused. */
  #accepted: (AcceptedTimes & { readonly stamped: boolean; readonly auth: Auth }) | undefined;

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
  known(): Auth | undefined {
    const { clock, generations } = this.context;
    if (!this.#accepted || !isCurrent(this.#accepted, clock())) {
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

  #accept(): Auth {
    try {
      const { context } = this;
      const { rules, claimsOf } = this.#policy;
      const given = claimsOf ? claimsOf(this.claims) : this.claims;
      const typed = checkClaims(given, rules, context.clock(), this.key);
      const generation = STEPS.grant.generation(context, typed);
      const scopes = STEPS.grant.scopes(this.#policy, typed);
      const { clientId, subject, tokenId, expiresAtMs, claims } = typed;
      const { issuer } = context;
      const auth = Object.freeze({ issuer, clientId, subject, tokenId, scopes, generation, expiresAtMs, claims });
      const stamped = context.generations?.isStamped(claims) ?? true;
      this.#accepted = { acceptedFromMs: typed.acceptedFromMs, acceptedUntilMs: typed.acceptedUntilMs, stamped, auth };
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
    return { issuer, clientId: clientNamedIn(this.claims, this.#policy.rules.preset) };
  }

  /**
   * Checks again what changes about a caller that it was accepted for: the key, the times, the generation.
   *
   * @throws AuthError when a request with the same token would be refused now
   */
  recheck(auth: Auth): void {
    if (!this.hasKey) this.#refuseKey();
    if (!this.#accepted || !isCurrent(this.#accepted, this.context.clock())) this.#accept();
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
function isCurrent({ acceptedFromMs, acceptedUntilMs }: AcceptedTimes, nowMs: number): boolean {
  return acceptedFromMs <= nowMs && nowMs < acceptedUntilMs;
}
