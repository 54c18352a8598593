import { AuthError } from '../core/auth-error';
import { describe } from '../core/options';
import { FIRST_TIME_MS, isGeneration } from './generation';

/** Where a token carries its generation, and in which shape. */
export interface GenerationRule {
  /** Name of the claim; `iat` compares the issue time, for issuers that stamp no generation. */
  readonly claim: string;
  /** Whether the claim may be a decimal string, as some issuers write every custom claim. */
  readonly decimalString: boolean;
  /** How far in the future a generation that is a time may lie, in ms. */
  readonly toleranceMs: number;
}

const CANONICAL_DECIMAL = /^(0|[1-9][0-9]*)$/;

/**
 * Reads the generation of a token.
 *
 * @throws AuthError `generation_missing` when the claim is absent or null, `generation_invalid` when it is anything but
 * an integer from 0 to 2^53 - 1, or a time later than `nowMs` plus the tolerance.
 */
export function readGeneration(claims: Readonly<Record<string, unknown>>, rule: GenerationRule, nowMs: number): number {
  const value = Object.hasOwn(claims, rule.claim) ? claims[rule.claim] : undefined;
  if (value === undefined || value === null) {
    throw new AuthError('generation_missing', { privateDetail: `claim "${rule.claim}" is ${String(value)}` });
  }
  const generation = rule.claim === 'iat' ? fromIssueTime(value) : fromClaim(value, rule.decimalString);
  if (!isGeneration(generation)) {
    throw new AuthError('generation_invalid', { privateDetail: `claim "${rule.claim}" is ${describe(value)}` });
  }
  if (generation >= FIRST_TIME_MS && generation > nowMs + rule.toleranceMs) {
    const ahead = `generation ${generation} is ${generation - nowMs} ms ahead of this clock`;
    throw new AuthError('generation_invalid', { privateDetail: ahead });
  }
  return generation;
}

/** Rounded down to the second (RFC 7519 section 2, NumericDate), so that a token of the same second dies too. */
function fromIssueTime(value: unknown): unknown {
  return typeof value === 'number' ? Math.floor(value) * 1000 : undefined;
}

function fromClaim(value: unknown, decimalString: boolean): unknown {
  return decimalString && typeof value === 'string' && CANONICAL_DECIMAL.test(value) ? Number(value) : value;
}
