import { AuthError } from '../core/auth-error';
import type { Clock } from '../core/clock';
import type { Algorithm } from './algorithms';
import { checkClaims } from './claims';
import type { CheckedClaims, ClaimRules } from './claims';
import { freezeDeep } from './strict-json';
import type { VerificationKey } from './keys/jwk';
import { checkHeader } from './jws';
import type { UnverifiedHeader, UnverifiedToken } from './jws';
import type { KeySource } from './keys/key-set';
import type { SignatureQueue } from './signature-queue';

/** What the tokens of one issuer are verified against. */
export interface VerifierOptions {
  readonly rules: ClaimRules;
  /** What a token has to have before its issuer has added the rest; by default all. */
  readonly rulesOfLightweight?: ClaimRules | undefined;
  readonly algorithms: readonly Algorithm[];
  readonly keys: KeySource;
  readonly signatures: SignatureQueue;
  readonly clock: Clock;
}

/** A token with a good signature, whose claims are not checked. */
export interface SignedToken {
  readonly claims: Readonly<Record<string, unknown>>;
  readonly key: VerificationKey;
}

/** A token that passed every check but its generation. */
export interface VerifiedToken extends CheckedClaims {
  readonly issuer: string;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** Verifies the tokens of one issuer, in two steps: only the result of the first may be cached. */
export interface TokenVerifier {
  /**
   * Checks header, key and signature (RFC 7515 section 5.2). Rejects with the AuthError of the first check that fails. The
   * claims of a token with an unknown key are checked first: what no key can change is worth no fetch.
   */
  verifySignature(token: UnverifiedToken): Promise<SignedToken>;
  /** Whether a known key has signed a token, of whatever type. For advice: it decides nothing, and asks no issuer for a key. */
  isSigned(token: UnverifiedToken): Promise<boolean>;
  /**
   * Checks the claims.
   *
   * @throws AuthError `invalid_claims`, `wrong_issuer`, `wrong_audience`, `expired`, `not_yet_valid`,
   * `lifetime_too_long` or `sender_constrained`
   */
  readonly verifyClaims: ClaimsVerifier;
}

/** Checks the claims of a token, whether they were signed or returned by an introspection endpoint. */
export type ClaimsVerifier = (token: Pick<SignedToken, 'claims'>) => VerifiedToken;

/** Makes the check of the claims of one issuer's tokens. */
export function claimsVerifier(rules: ClaimRules, clock: Clock): ClaimsVerifier {
  const { issuer } = rules;
  return function verifyClaims({ claims }) {
    // Member by member: a spread takes as long as all checks of the claims together.
    const checked = checkClaims(claims, rules, clock());
    return {
      issuer,
      clientId: checked.clientId,
      subject: checked.subject,
      tokenId: checked.tokenId,
      expiresAtMs: checked.expiresAtMs,
      acceptedFromMs: checked.acceptedFromMs,
      acceptedUntilMs: checked.acceptedUntilMs,
      claims: freezeDeep(claims),
    };
  };
}

/** The cause of a refusal that no signature vouches for. */
const KEY_UNKNOWN = new AuthError('unknown_key');

/** Marks what `check` throws: `isUnverified()` is true for it. */
function checkBeforeAsking(check: () => unknown): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof AuthError)) throw error;
    const { reason, privateDetail } = error;
    const why = 'its key is unknown, and was not asked for';
    throw new AuthError(reason, {
      privateDetail: privateDetail === undefined ? why : `${privateDetail}; ${why}`,
      cause: KEY_UNKNOWN,
    });
  }
}

/** Whether claims were refused before the signature could be verified, because the key is unknown. */
export function isUnverified({ cause }: AuthError): boolean {
  return cause === KEY_UNKNOWN;
}

const ANY_TYPE = { has: () => true };

function refuseUnknown(): never {
  throw KEY_UNKNOWN;
}

/** Makes the verifier of one issuer. */
export function tokenVerifier(options: VerifierOptions): TokenVerifier {
  const { rules, rulesOfLightweight = rules, algorithms, keys, signatures, clock } = options;
  const accepted = { algorithms: new Set(algorithms), types: new Set(rules.preset.types) };

  /** Verifies a signature whose header has been checked; `checkToken` as for `KeySource.find()`. */
  async function verify(
    token: UnverifiedToken,
    header: UnverifiedHeader,
    checkToken: () => void,
  ): Promise<SignedToken> {
    const key = await keys.find(header, checkToken);
    await signatures.verify(token, key, header.algorithm);
    return { claims: token.claims, key };
  }

  return {
    async verifySignature(token) {
      const header = checkHeader(token.header, accepted);
      return verify(token, header, () =>
        checkBeforeAsking(() => checkClaims(token.claims, rulesOfLightweight, clock())),
      );
    },
    async isSigned(token) {
      try {
        const header = checkHeader(token.header, { ...accepted, types: ANY_TYPE });
        await verify(token, header, refuseUnknown);
        return true;
      } catch {
        return false;
      }
    },
    verifyClaims: claimsVerifier(rules, clock),
  };
}
