import { AuthError } from '../../core/errors';
import { REASONS, type Reason, type ReasonRow } from '../../core/reasons';
import { option, readOptions } from '../../core/options';
import { describe } from '../../core/words';
import type { Auth } from '../../verifier/options';
import { describeLack, readRequirement, satisfies } from '../../verifier/scope-requirement';
import { confirmationsOf } from '../../possession/possession';
import { gateOf } from '../../verifier/gate-verifier';
import { isUnverified } from '../../verifier/steps';
import { authenticate } from '../authenticate';
import { scopeHint } from './advice';

/** Why a token is accepted or refused. */
export interface Explanation {
  readonly accepted: boolean;
  /** HTTP status of the refusal; absent when accepted. */
  readonly status?: number;
  /**
   * All checks in order; those after the first that failed are not made. The claims of a token with an unknown key are
   * checked before its issuer is asked for the key: where they fail, `key` and `signature` are not reached.
   */
  readonly checks: readonly {
    /** `possession` where the gate has it: whether the token is bound as required. Its proof comes with each request. */
    readonly check: ReasonRow['check'];
    readonly outcome: 'passed' | 'failed' | 'not reached';
    /** Present when failed. */
    readonly reason?: Reason;
    /**
     * For operators: what is wrong, when failed; of `possession`, when passed, what each request has to prove: that cannot be
     * checked without one.
     */
    readonly detail?: string;
  }[];
  /** Present when the token itself is good. */
  readonly auth?: Auth;
}

type Check = ReasonRow['check'];

/** The checks of a signed or opaque token, at a gate that knows sender-constrained tokens or does not. */
function checksOf({ isOpaque = false, hasPossession = false }): readonly Check[] {
  return [
    'structure',
    ...(isOpaque ? (['introspection'] as const) : (['header', 'key', 'signature'] as const)),
    'claims',
    'generation',
    ...(hasPossession ? (['possession'] as const) : []),
    'scope',
  ];
}

const EXPLAIN_OPTIONS = {
  gate: option('what authenticate() returned', (given) => gateOf(given as object)),
  scopes: option('scopes', (given, { factory }) => readRequirement([given], factory)),
};

/** `explain()`. */
export async function explainToken(token: unknown, need: object): Promise<Explanation> {
  const given = readOptions('explain', need, EXPLAIN_OPTIONS);
  if (typeof token !== 'string' || token === '') {
    throw new TypeError(`explain(): expected a token, got ${describe(token)}`);
  }
  const own = given.gate ? undefined : authenticate();
  const { scopes: requirement, gate = gateOf(own!)! } = given;
  const verifier = gate.verifierOf(token);
  const isOpaque = gate.isIntrospecting(verifier);
  const all = checksOf({ isOpaque, hasPossession: gate.possession !== undefined });
  let auth: Auth | undefined;
  try {
    auth = await verifier.verify(token);
    gate.possession?.requireBinding(auth.claims);
    if (requirement && !satisfies(auth.scopes, requirement)) {
      const privateDetail = describeLack(auth.scopes, requirement) + scopeHint(auth, gate.settings.issuers);
      throw new AuthError('insufficient_scope', { privateDetail });
    }
    return { accepted: true, checks: passed(all, auth), auth };
  } catch (error) {
    if (!(error instanceof AuthError)) throw error;
    const checks = checksUntil(error, gate.settings.issuers.length, all);
    return { accepted: false, status: error.status, checks, ...(auth && { auth }) };
  } finally {
    await own?.close();
  }
}

function passed(checks: readonly Check[], auth?: Auth): Explanation['checks'] {
  return checks.map((check) => {
    const isBinding = check === 'possession' && auth !== undefined;
    return { check, outcome: 'passed', ...(isBinding && { detail: proofsOf(auth.claims) }) };
  });
}

/** What each request with a token has to prove. */
function proofsOf({ cnf }: Auth['claims']): string {
  const names = confirmationsOf(cnf);
  if (names.length === 0) return 'not bound to a key: accepted as a plain bearer token';
  return `bound by ${names.join(' and ')} of cnf: each request needs the proof, which cannot be checked without the request`;
}

/** The checks of a gate with this many issuers, up to the one that failed with this error; without an error all have passed. */
export function checksUntil(
  error: AuthError | undefined,
  issuers: number,
  all = checksOf({ hasPossession: error !== undefined && REASONS[error.reason].check === 'possession' }),
): Explanation['checks'] {
  if (!error) return passed(all);
  const { reason, privateDetail } = error;
  const failed = all.indexOf(failedCheck(reason, all, issuers));
  const reached = isUnverified(error) ? all.indexOf('key') : failed;
  return all.map((check, index) => {
    if (index === failed) return { check, outcome: 'failed', reason, detail: privateDetail ?? REASONS[reason].detail };
    return { check, outcome: index < reached ? 'passed' : 'not reached' };
  });
}

function failedCheck(reason: Reason, all: readonly Check[], issuers: number): Check {
  // An opaque token has no header and no key: its type is among the claims, and it waits for introspection.
  if (!all.includes('header')) return OF_OPAQUE[reason] ?? REASONS[reason].check;
  // With several issuers `iss` selects the keys, before anything else is checked.
  return reason === 'wrong_issuer' && issuers > 1 ? 'structure' : REASONS[reason].check;
}

const OF_OPAQUE: Partial<Record<Reason, Check>> = { wrong_type: 'claims', too_many_unknown_keys: 'introspection' };
