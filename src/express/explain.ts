import { AuthError } from '../core/auth-error';
import type { Reason } from '../core/reasons';
import { describe, readOptions } from '../core/options';
import type { Auth } from './auth';
import { authenticate, judgeOf } from './authenticate';
import type { Gate } from './authenticate';
import type { Check } from './judge';
import { readRequirement, satisfies } from './require-scope';

/** What a token is to be explained against. */
export interface ExplainNeed {
  /** The gate that decides. Default: one made from the `TILLGATE_*` variables, closed afterwards. */
  readonly gate?: Gate | undefined;
  /** Scopes that the route asks for: all of them, or any one with `{ anyOf: [...] }`. Default: none. */
  readonly scopes?: readonly string[] | { readonly anyOf: readonly string[] } | undefined;
}

/** Outcome of one check; those behind the first that failed are not made. */
export interface ExplainedCheck {
  readonly check: Check | 'scope';
  readonly outcome: 'passed' | 'failed' | 'not reached';
  /** Present when failed. */
  readonly reason?: Reason;
  /** What is wrong, for operators; present when failed. */
  readonly detail?: string;
}

/** Why a token is accepted or refused. */
export interface Explanation {
  readonly accepted: boolean;
  /** HTTP status of the refusal; absent when accepted. */
  readonly status?: number;
  readonly checks: readonly ExplainedCheck[];
  /** Present when the token itself is good. */
  readonly auth?: Auth;
}

const CHECKS = ['structure', 'header', 'key', 'signature', 'claims', 'generation', 'scope'] as const;

/**
 * Explains what a gate makes of a token: every check in order, and the first that failed. For developers and
 * operators, never for an answer to a caller.
 *
 * @throws TypeError when an argument is wrong
 *
 * @example
 * ```ts
 * import { authenticate, explain } from 'tillgate';
 *
 * const gate = authenticate({ issuer: 'https://login.example.com', audience: 'https://api.example.com' });
 * const { accepted, checks } = await explain('eyJhbGciOi...', { gate, scopes: ['orders:read'] });
 * ```
 */
export async function explain(token: string, need: ExplainNeed = {}): Promise<Explanation> {
  readOptions('explain', need, ['gate', 'scopes']);
  if (typeof token !== 'string' || token === '') {
    throw new TypeError(`explain(): expected a token, got ${describe(token)}`);
  }
  const requirement = need.scopes && readRequirement([need.scopes]);
  const gate = need.gate ?? authenticate();
  const passed: ExplainedCheck['check'][] = [];
  let auth: Auth | undefined;
  try {
    auth = await judgeOf(gate).verify(token, (check) => passed.push(check));
    if (requirement && !satisfies(auth.scopes, requirement)) throw new AuthError('insufficient_scope');
    return { accepted: true, checks: explained([...passed, 'scope']), auth };
  } catch (error) {
    if (!(error instanceof AuthError)) throw error;
    return { accepted: false, status: error.status, checks: explained(passed, error), ...(auth && { auth }) };
  } finally {
    if (!need.gate) await gate.close();
  }
}

function explained(passed: readonly string[], failure?: AuthError): readonly ExplainedCheck[] {
  return CHECKS.map((check, index) => {
    if (index < passed.length) return { check, outcome: 'passed' };
    if (index > passed.length || !failure) return { check, outcome: 'not reached' };
    return { check, outcome: 'failed', reason: failure.reason, detail: failure.privateDetail ?? failure.message };
  });
}
