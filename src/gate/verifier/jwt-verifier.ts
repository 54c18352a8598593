import type { Caller } from '../token/fair-queue';
import type { IssuerContext } from './issuer';
import type { Auth } from './options';
import { SIGNATURE_STEPS, type JwtState } from './steps';
import { TokenCache } from './token-cache';
import { TrustedToken } from './trusted-token';
import type { Verifier } from './verifier';

/** Verifies JWTs (RFC 7519) by the keys of their issuers. */
export class JwtVerifier implements Verifier {
  readonly #issuers: readonly IssuerContext[];
  readonly #cache: TokenCache<TrustedToken> | undefined;

  /** @param cachedTokens - at most; 0: none */
  constructor(issuers: readonly IssuerContext[], cachedTokens: number) {
    this.#issuers = issuers;
    this.#cache = cachedTokens > 0 ? new TokenCache(cachedTokens) : undefined;
  }

  known(raw: string): Auth | undefined {
    const token = this.#cache?.get(raw);
    if (!token) return undefined;
    if (token.hasKey) return token.known();
    this.#cache?.delete(raw);
    return undefined;
  }

  /** Makes the steps up to the signature (RFC 7515 section 5.2), then accepts the token. */
  async verify(raw: string, caller?: Caller): Promise<Auth> {
    // The steps set the rest.
    const jwt = { raw, issuers: this.#issuers, caller } as JwtState;
    for (let at = 0; at < SIGNATURE_STEPS.length; at++) {
      const pending = SIGNATURE_STEPS[at]!(jwt);
      if (pending instanceof Promise) await pending;
    }
    const token = new TrustedToken(jwt.context, jwt.context.policy, jwt.token.claims, jwt.key);
    // Refused claims are cached too: repeating an expired token costs no signature check each time.
    this.#cache?.set(jwt.token, token);
    return token.accept();
  }
}
