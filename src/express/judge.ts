import { AuthError } from '../core/auth-error';
import { parseToken } from '../token/jws';
import type { UnverifiedToken } from '../token/jws';
import { verdictCache } from '../token/verdict-cache';
import type { VerifiedToken } from '../token/verified-token';
import type { SignedToken, TokenCheck } from '../token/verify';
import type { Auth } from './auth';
import type { GateSettings } from './read-options';
import { trust } from './trust';
import type { IssuerStatus, Trust } from './trust';

/** State of a gate, for operators. */
export interface GateStatus {
  /** Whether every issuer's keys and generations are good enough to decide about requests. */
  readonly ready: boolean;
  readonly issuers: readonly IssuerStatus[];
}

/** Checks made on a token before any route's requirement, in order. */
export type Check = TokenCheck | 'generation';

/** Decides whether a token is good: what a gate is without HTTP around it. */
export interface Judge {
  /**
   * The verdict on a token that was found good before, with everything checked again that can change meanwhile.
   *
   * @throws AuthError when it is not good any more
   */
  recall(token: string): Auth | undefined;
  /**
   * Verifies a token: structure, header, key, signature, claims, generation. Tells `passed` after each check. Answers at
   * once when keys and generations are at hand.
   *
   * @throws AuthError of the first check that fails; or rejects with it
   */
  verify(token: string, passed?: (check: Check) => void): Auth | Promise<Auth>;
  ready(): Promise<void>;
  status(): GateStatus;
  close(): Promise<void>;
}

/** What is remembered of a token: that its signature is good, and what came of the rest if nothing spoke against it. */
interface Verdict {
  readonly trust: Trust;
  readonly signed: SignedToken;
  accepted?: { readonly verified: VerifiedToken; readonly auth: Auth };
}

/** Makes the judge over all issuers of a gate. */
export function judge(settings: GateSettings): Judge {
  const trusts = new Map(settings.issuers.map((issuer) => [issuer.issuer, trust(issuer, settings)]));
  const only = trusts.size === 1 ? [...trusts.values()][0] : undefined;
  const verdicts = settings.verifiedTokens > 0 ? verdictCache<Verdict>(settings.verifiedTokens) : undefined;

  /** With one issuer its keys decide, so that the signature is checked before any claim; with several, `iss` says whose. */
  function trustFor(issuer: unknown): Trust {
    const found = only ?? (typeof issuer === 'string' ? trusts.get(issuer) : undefined);
    if (!found) throw new AuthError('wrong_issuer');
    return found;
  }

  function verify(token: string, passed: (check: Check) => void = ignore): Auth | Promise<Auth> {
    const unverified = parseToken(token);
    const trusted = trustFor(unverified.claims['iss']);
    const signed = trusted.verifier.verifySignature(unverified, passed);
    const starting = trusted.tracker?.settled();
    if (signed instanceof Promise || starting) return verifyLater(unverified, trusted, signed, passed);
    return conclude(remember(unverified, trusted, signed), passed);
  }

  async function verifyLater(
    unverified: UnverifiedToken,
    trusted: Trust,
    verifying: SignedToken | Promise<SignedToken>,
    passed: (check: Check) => void,
  ): Promise<Auth> {
    const verdict = remember(unverified, trusted, await verifying);
    // A token can come before the first read of the generations has ended: it waits for it, for as long as one read may take.
    await trusted.tracker?.settled();
    return conclude(verdict, passed);
  }

  /** Whatever the claims say: who sends an expired token again and again costs no signature each time. */
  function remember(unverified: UnverifiedToken, trusted: Trust, signed: SignedToken): Verdict {
    const verdict: Verdict = { trust: trusted, signed };
    verdicts?.set(unverified, verdict);
    return verdict;
  }

  /** The generation comes last: only a token that passed every other check may raise a floor. */
  function conclude(verdict: Verdict, passed: (check: Check) => void): Auth {
    const { trust: trusted, signed } = verdict;
    const verified = trusted.verifier.verifyClaims(signed);
    passed('claims');
    const generation = trusted.tracker?.admit(verified.clientId, verified.claims);
    passed('generation');
    const auth = toAuth(verified, generation);
    verdict.accepted = { verified, auth };
    return auth;
  }

  function recall(token: string): Auth | undefined {
    const verdict = verdicts?.get(token);
    if (!verdict) return undefined;
    const { trust: trusted, signed, accepted } = verdict;
    if (!trusted.verifier.stillSigned(signed)) {
      verdicts?.delete(token);
      return undefined;
    }
    if (!accepted) return trusted.tracker?.settled() ? undefined : conclude(verdict, ignore);
    const { verified, auth } = accepted;
    trusted.verifier.checkTimes(verified);
    if (auth.generation !== undefined) trusted.tracker?.check(auth.clientId, auth.generation);
    return auth;
  }

  return {
    verify,
    recall,
    async ready() {
      await Promise.all([...trusts.values()].map((each) => each.ready()));
    },
    status() {
      const issuers = [...trusts.values()].map((each) => each.status());
      return { ready: issuers.every(isReady), issuers };
    },
    async close() {
      await Promise.all([...trusts.values()].map((each) => each.close()));
    },
  };
}

function isReady({ keys, generations }: IssuerStatus): boolean {
  const haveKeys = keys.state === 'fresh' || keys.state === 'stale';
  return haveKeys && (generations === undefined || generations.source === 'none' || generations.source === 'fresh');
}

function toAuth(verified: VerifiedToken, generation: number | undefined): Auth {
  const { issuer, clientId, subject, tokenId, scopes, expiresAtMs, claims } = verified;
  return Object.freeze({ issuer, clientId, subject, tokenId, scopes, generation, expiresAtMs, claims });
}

function ignore(): void {}
