import { claimAt, type ClaimPath } from '../core/claim-path';
import { AuthError } from '../core/errors';
import { describe } from '../core/words';
import type { Change } from './log';

/** From here on (September 2001) a generation is a time in ms; a smaller number is another system's counter. */
export const FIRST_TIME_MS = 1e12;

/** Whether a value can be a generation: an integer from 0 to 2^53 - 1, a time in ms since the epoch or a counter of another system. */
export function isGeneration(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Refused as a client id: in ACLs and queries of other systems it means every client. */
export const WILDCARD = '*';

/** UTF-8 cannot encode a lone surrogate, so a store would keep another client id; PostgreSQL stores no U+0000. */
const NOT_STORABLE = /\0|\p{Surrogate}/u;

/** In UTF-16 code units. RFC 6749 sets no limit; this one fits every engine. */
const MAX_CLIENT_ID_LENGTH = 2_048;

/** How early a change may come, in ms: one in microseconds, for example, must not lock a client out for ever. */
const CHANGE_TOLERANCE_MS = 60_000;

/**
 * Checks a change before it is appended: a client id of 1 to 2,048 characters that every engine can store, and a generation whose time is
 * not later than a minute from now.
 *
 * @param nowMs - the time in ms since the epoch
 * @throws TypeError when it is not one, or its generation lies in the future
 * @example
 * ```ts
 * import { requireChange } from 'tillgate/generations';
 * import type { Change } from 'tillgate/generations';
 *
 * async function append(changes: readonly Change[]) {
 *   for (const change of changes) requireChange(change, Date.now());
 *   // ... and write them
 * }
 * ```
 */
export function requireChange([clientId, generation]: Change | readonly [unknown, unknown], nowMs: number): void {
  if (typeof clientId !== 'string' || clientId === '' || clientId.length > MAX_CLIENT_ID_LENGTH) {
    const expected = `a text of 1 to ${MAX_CLIENT_ID_LENGTH} characters`;
    throw new TypeError(`generations: client id must be ${expected}, got ${describe(clientId)}`);
  }
  if (clientId === WILDCARD) throw new TypeError('generations: "*" is not a client id: name each client');
  if (NOT_STORABLE.test(clientId)) {
    throw new TypeError('generations: client id must be Unicode text without lone surrogates and zero characters');
  }
  if (!isGeneration(generation)) {
    throw new TypeError(`generations: generation must be an integer from 0 to 2^53 - 1, got ${describe(generation)}`);
  }
  if (isInFuture(generation, nowMs, CHANGE_TOLERANCE_MS)) {
    const unit = generation >= FIRST_WRONG_MS ? '; is it in microseconds?' : '';
    throw new TypeError(
      `generations: generation must not lie in the future, got ${generation}, expected at most ${nowMs} (now in ms)${unit}`,
    );
  }
}

/** Whether a generation is a time in ms that has not come yet. */
export function isInFuture(generation: number, nowMs: number, toleranceMs: number): boolean {
  return generation >= FIRST_TIME_MS && generation > nowMs + toleranceMs;
}

/** From here on (the year 33658) a number is not a time in ms, but one in microseconds, for example. */
const FIRST_WRONG_MS = 1e15;

/**
 * Whether `requireChange()` refuses a change for its time alone, which has not come: the clock was set back, or is slow. Such a change is
 * pending; a wrong one would be refused at any time.
 *
 * @param nowMs - the time in ms since the epoch
 */
export function isEarly([clientId, generation]: Change, nowMs: number): boolean {
  const isTime = typeof generation === 'number' && generation < FIRST_WRONG_MS;
  return typeof clientId === 'string' && isTime && isInFuture(generation, nowMs, CHANGE_TOLERANCE_MS);
}

/** Which claim carries the generation, and its type. */
export interface GenerationRule {
  /** Name of the claim; `iat` compares the issue time, for issuers that stamp no generation. */
  readonly claim: string;
  /** Where it is. Default: at the top of the token. */
  readonly path?: ClaimPath | undefined;
  /** Whether a token that lacks the claim is compared by `iat`. Default: it is refused. */
  readonly elseIat?: boolean;
  /** Whether the claim may be a decimal string; some issuers write every custom claim as one. */
  readonly decimalString: boolean;
  /** How far in the future a generation that is a time may lie, in ms. */
  readonly toleranceMs: number;
}

const CANONICAL_DECIMAL = /^(0|[1-9][0-9]*)$/;

/** Whether a token is compared by a number that was stamped, whatever its value, and not by its time of issue. */
export function isStamped(claims: object, { claim, elseIat = false }: GenerationRule): boolean {
  return claim !== 'iat' && (!elseIat || Object.hasOwn(claims, claim));
}

/**
 * Reads the generation of a token.
 *
 * @throws AuthError `generation_missing` when the claim is absent or null, `generation_invalid` when it is anything but
 * an integer from 0 to 2^53 - 1, or a time later than `nowMs` plus the tolerance.
 */
export function readGeneration(claims: Readonly<Record<string, unknown>>, rule: GenerationRule, nowMs: number): number {
  const stamped = isStamped(claims, rule);
  const claim = stamped ? rule.claim : 'iat';
  const value = claimAt(claims, (stamped && rule.path) || [claim]);
  if (value === undefined || value === null) {
    throw new AuthError('generation_missing', { privateDetail: `claim "${claim}" is ${String(value)}` });
  }
  const isText = typeof value === 'string' && CANONICAL_DECIMAL.test(value);
  const number = isText && rule.decimalString ? Number(value) : value;
  // Rounded down to the second (RFC 7519 section 2, NumericDate), so that a token of the same second dies too.
  const issued = typeof value === 'number' ? Math.floor(value) * 1000 : undefined;
  const generation = claim === 'iat' ? issued : number;
  if (!isGeneration(generation)) {
    const hint = isText ? ', a text of digits: have the authorization server stamp it as a number' : '';
    throw new AuthError('generation_invalid', { privateDetail: `claim "${claim}" is ${describe(value)}${hint}` });
  }
  if (isInFuture(generation, nowMs, rule.toleranceMs)) {
    const ahead = `generation ${generation} is ${generation - nowMs} ms ahead of this clock`;
    throw new AuthError('generation_invalid', { privateDetail: ahead });
  }
  return generation;
}
