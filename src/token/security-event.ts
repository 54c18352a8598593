import type { Clock } from '../core/clock';
import { AuthError } from '../core/errors';
import { isObject } from '../core/objects';
import type { Caller } from './fair-queue';
import type { Algorithm } from './signature';
import { checkHeader, parseToken } from './jws';
import type { UnverifiedToken } from './jws';
import type { KeySource } from './keys/key-set';
import { SignatureVerifier } from './signature';

/** What the security event tokens of one transmitter are verified against. */
interface SecurityEventOptions {
  /** Exactly the `iss` of the tokens. */
  readonly transmitter: string;
  /** One of these must be in `aud`. */
  readonly audiences: readonly string[];
  readonly algorithms: readonly Algorithm[];
  readonly keys: KeySource;
  readonly clockToleranceMs: number;
  readonly clock: Clock;
}

/** A verified security event token (RFC 8417 section 2.2). */
export interface SecurityEvent {
  readonly tokenId: string;
  readonly issuedAtMs: number;
  /** Event type URIs and their payloads. */
  readonly events: Readonly<Record<string, unknown>>;
  /** Subject identifier (RFC 9493), when it is a top-level claim. */
  readonly subject: unknown;
}

const TYPES: ReadonlySet<string | undefined> = new Set(['secevent+jwt']);

/**
 * Makes the function that verifies security event tokens (RFC 8417). Their type is checked as strictly as that of
 * access tokens, so that neither can stand in for the other (RFC 8417 section 4.6, RFC 8725 section 3.11).
 */
export function securityEventVerifier(
  options: SecurityEventOptions,
): (raw: string, caller?: Caller) => Promise<SecurityEvent> {
  const { transmitter, audiences, keys, clock, clockToleranceMs } = options;
  const signatures = new SignatureVerifier();
  const accepted = { algorithms: new Set(options.algorithms), types: TYPES };

  return async function verifySecurityEvent(raw, caller) {
    const token = parseToken(raw);
    const header = checkHeader(token.header, accepted);
    const key = await keys.find(header, () => void readEvent(token.claims));
    await signatures.verify(token, key, header.algorithm, caller);
    return readEvent(token.claims);
  };

  function readEvent(claims: UnverifiedToken['claims']): SecurityEvent {
    const { iss, aud, jti, iat, exp, events, sub_id: subject } = claims;
    if (iss !== transmitter) throw new AuthError('wrong_issuer');
    const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
    if (!named.some((audience) => audiences.some((own) => own === audience))) throw new AuthError('wrong_audience');
    if (typeof jti !== 'string' || jti === '') throw invalid('jti is not a non-empty string');
    if (typeof iat !== 'number' || !Number.isFinite(iat) || iat < 0) throw invalid('iat is not a time');
    if (iat * 1000 > clock() + clockToleranceMs) throw new AuthError('not_yet_valid');
    // RFC 8417 section 2.2 advises against `exp`, but a token that has one expires.
    if (exp !== undefined && typeof exp !== 'number') throw invalid('exp is not a number');
    if (exp !== undefined && clock() >= exp * 1000 + clockToleranceMs) throw new AuthError('expired');
    if (!isObject(events) || Object.keys(events).length === 0) throw invalid('events is not a non-empty object');
    return { tokenId: jti, issuedAtMs: iat * 1000, events, subject };
  }
}

function invalid(privateDetail: string): AuthError {
  return new AuthError('invalid_claims', { privateDetail });
}
