import { AuthError } from '../core/auth-error';
import { parseToken } from '../token/jws';
import type { UnverifiedToken } from '../token/jws';
import { verdictCache } from '../token/verdict-cache';
import type { VerifiedToken } from '../token/verified-token';
import type { TokenCheck } from '../token/verify';
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

interface Verdict {
  readonly verified: VerifiedToken;
  readonly trust: Trust;
  readonly auth: Auth;
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
    const verified = trusted.verifier.verify(unverified, passed);
    const starting = trusted.tracker?.settled();
    if (verified instanceof Promise || starting) return verifyLater(unverified, trusted, verified, passed);
    return conclude(unverified, trusted, verified, passed);
  }

  async function verifyLater(
    unverified: UnverifiedToken,
    trusted: Trust,
    verifying: VerifiedToken | Promise<VerifiedToken>,
    passed: (check: Check) => void,
  ): Promise<Auth> {
    const verified = await verifying;
    // A token can come before the first read of the generations has ended: it waits for it, for as long as one read may take.
    await trusted.tracker?.settled();
    return conclude(unverified, trusted, verified, passed);
  }

  /** The generation comes last: only a token that passed every other check may raise a floor. */
  function conclude(
    unverified: UnverifiedToken,
    trusted: Trust,
    verified: VerifiedToken,
    passed: (check: Check) => void,
  ): Auth {
    const generation = trusted.tracker?.admit(verified.clientId, verified.claims);
    passed('generation');
    const auth = toAuth(verified, generation);
    verdicts?.set(unverified, { verified, trust: trusted, auth });
    return auth;
  }

  function stillGood({ verified, trust: { verifier, tracker }, auth }: Verdict): boolean {
    if (!verifier.stillValid(verified)) return false;
    if (auth.generation !== undefined) tracker?.check(auth.clientId, auth.generation);
    return true;
  }

  return {
    verify,
    recall(token) {
      const verdict = verdicts?.get(token);
      if (!verdict) return undefined;
      if (stillGood(verdict)) return verdict.auth;
      verdicts?.delete(token);
      return undefined;
    },
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
