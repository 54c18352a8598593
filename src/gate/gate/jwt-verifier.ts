import { AuthError } from '../core/errors';
import { describe } from '../core/options';
import type { Caller } from '../token/fair-queue';
import { parseToken } from '../token/jws';
import type { UnverifiedToken } from '../token/jws';
import type { IssuerContext } from './issuer';
import type { Auth } from './options';
import type { GateSettings } from './read-options';
import { TokenCache } from './token-cache';
import { originOf, TrustedToken } from './trusted-token';
import type { Verifier } from './trusted-token';

/** Verifies JWTs (RFC 7519) by the keys of their issuers. */
export class JwtVerifier implements Verifier {
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

  recheck(auth: Auth): boolean {
    const token = originOf(auth);
    if (!token?.key || token.context !== this.#byIssuer.get(auth.issuer)) return false;
    token.recheck(auth, this.#clock());
    return true;
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
