import { createHash } from 'node:crypto';
import { AuthError } from '../../core/auth-error';
import type { Clock } from '../../core/clock';
import { escapeUnsafe, loggablePath } from '../../core/logger';
import type { Logger } from '../../core/logger';
import { ownValue } from '../../core/objects';
import { certificateReader } from './client-certificate';
import type { MtlsSettings } from './client-certificate';
import { dpopNonces } from './dpop-nonce';
import type { DpopSettings } from './dpop-options';
import { accessTokenHash, invalidProof, verifyProof } from './dpop-proof';
import type { DpopProof } from './dpop-proof';
import { isInMemory, memoryReplayStore } from './replay-store';
import { isUrlOf, usesDpop } from './request';
import type { PossessionRequest } from './request';

/** What proofs of possession are checked against. */
export interface PossessionSettings {
  readonly dpop: DpopSettings | undefined;
  readonly mtls: MtlsSettings | undefined;
  /** `'any'`: a token has to be bound, either way. */
  readonly binding: 'any' | undefined;
  /** The issuers; the largest of their clock tolerances applies to proofs. */
  readonly issuers: readonly { readonly clockToleranceMs: number }[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Checks that the caller holds the key that its token is bound to. */
export interface PossessionVerifier {
  /**
   * Checks that a token is bound to a key where that is required: what can be said about it without a request.
   *
   * @throws AuthError `binding_required`
   */
  requireBinding(claims: Readonly<Record<string, unknown>>): void;
  /**
   * Checks the proofs of a request whose token is good (RFC 9449 section 7, RFC 8705 section 3). Rejects with an AuthError
   * `sender_constrained`, `binding_required`, `wrong_binding`, `invalid_dpop_proof`, `dpop_nonce_required`,
   * `too_many_proofs` or `replay_store_unavailable`.
   *
   * @returns the nonce that the response should carry, where the one of the proof is aging (RFC 9449 section 8.2)
   */
  verify(
    request: PossessionRequest,
    token: string,
    claims: Readonly<Record<string, unknown>>,
  ): Promise<string | undefined>;
  /** The nonce for a response with `dpop_nonce_required`. */
  nonce(): string | undefined;
}

/** Makes the verifier of a gate; `undefined` where neither DPoP nor mutual TLS is on, and bound tokens are refused by their claims. */
export function possessionVerifier(settings: PossessionSettings): PossessionVerifier | undefined {
  const { dpop, mtls, binding } = settings;
  if (!dpop && !mtls) return undefined;
  const proofs = dpop && dpopVerifier(dpop, settings);
  const readCertificate = mtls && certificateReader(mtls);

  function requireBinding(claims: Readonly<Record<string, unknown>>): void {
    const { key, certificate } = bindingsOf(claims);
    const isMissing =
      (dpop?.required && key === undefined) ||
      (mtls?.required && certificate === undefined) ||
      (binding === 'any' && key === undefined && certificate === undefined);
    if (isMissing) throw new AuthError('binding_required');
  }

  return {
    requireBinding,
    async verify(request, token, claims) {
      const { key, certificate } = bindingsOf(claims);
      if (readCertificate && certificate !== undefined) checkBinding(certificate, readCertificate(request));
      requireBinding(claims);
      if (!proofs) return undefined;
      if (usesDpop(request)) {
        if (key === undefined) throw new AuthError('binding_required');
        return proofs.verify(request, token, key);
      }
      if (key !== undefined) {
        throw new AuthError('sender_constrained', { privateDetail: 'the token came with the Bearer scheme' });
      }
      return undefined;
    },
    nonce: () => proofs?.nonce(),
  };
}

/** What a token is bound to (RFC 9449 section 6.1, RFC 8705 section 3.1). */
function bindingsOf(claims: Readonly<Record<string, unknown>>): { key: unknown; certificate: unknown } {
  const confirmation = ownValue(claims, 'cnf');
  return { key: ownValue(confirmation, 'jkt'), certificate: ownValue(confirmation, 'x5t#S256') };
}

function checkBinding(bound: unknown, proven: string | undefined): void {
  if (proven === undefined) {
    throw new AuthError('sender_constrained', { privateDetail: 'the request has no client certificate' });
  }
  if (bound !== proven) throw new AuthError('wrong_binding');
}

/** How far the clocks of two processes of an API may differ at least, where a tolerance is small or 0. */
const MIN_CLOCK_DIFFERENCE_MS = 20_000;

function dpopVerifier(settings: DpopSettings, { clock, issuers, logger }: PossessionSettings) {
  const clockToleranceMs = Math.max(...issuers.map((issuer) => issuer.clockToleranceMs));
  // One clock may be ahead and another behind. The process that is ahead must not forget what the other still accepts.
  const clockDifferenceMs = Math.max(2 * clockToleranceMs, MIN_CLOCK_DIFFERENCE_MS);
  const { baseUrl, nonce } = settings;
  const proofMaxAgeMs = 1000 * settings.proofMaxAgeSeconds;
  const algorithms = new Set(settings.algorithms);
  const replays = settings.replayStore ?? memoryReplayStore({ clock });
  const nonces = nonce === false ? undefined : dpopNonces(clock, nonce === true ? undefined : nonce.secret);
  if (typeof nonce === 'object' && isInMemory(replays)) {
    logger.warn(
      {},
      'dpop.nonce.secret is for several processes, but dpop.replayStore is in memory: ' +
        'each process accepts a proof once; use redisReplayStore() of tillgate/dpop',
    );
  }

  async function verify(request: PossessionRequest, token: string, bound: unknown): Promise<string | undefined> {
    const proof = verifyProof(proofOf(request), algorithms, bound);
    if (proof.method !== request.method) throw invalidProof('htm is not the method of the request');
    const target = request.originalUrl ?? request.url ?? '';
    if (!isUrlOf(proof.url, baseUrl, target)) throw invalidProof(`htu is not ${baseUrl}${loggable(target)}`);
    if (proof.tokenHash !== accessTokenHash(token)) throw invalidProof('ath is not the hash of the access token');
    const nowMs = clock();
    if (nowMs >= proof.expiresAtMs + clockToleranceMs) throw invalidProof('exp has passed');
    if (nowMs < proof.notBeforeMs - clockToleranceMs) throw invalidProof('nbf is in the future');
    const untilMs = acceptedUntilMs(proof, nowMs);
    await rememberProof(proof, untilMs);
    return nonces?.isAging(untilMs) ? nonces.make() : undefined;
  }

  /** First moment at which a proof would be refused without being remembered. */
  function acceptedUntilMs({ issuedAtMs, nonce }: DpopProof, nowMs: number): number {
    if (nonces) {
      const untilMs = nonce === undefined ? undefined : nonces.acceptedUntilMs(nonce);
      if (untilMs === undefined) throw new AuthError('dpop_nonce_required');
      return untilMs;
    }
    const untilMs = issuedAtMs + proofMaxAgeMs + clockToleranceMs;
    if (issuedAtMs > nowMs + clockToleranceMs) throw invalidProof('iat is in the future');
    if (nowMs >= untilMs) throw invalidProof('iat is too old');
    return untilMs;
  }

  async function rememberProof({ thumbprint, id }: DpopProof, untilMs: number): Promise<void> {
    const name = createHash('sha256').update(`${thumbprint}\n${id}`).digest().subarray(0, 16).toString('base64url');
    let isNew: boolean;
    try {
      isNew = await replays.remember(name, untilMs + clockDifferenceMs, thumbprint);
    } catch (cause) {
      if (cause instanceof AuthError && cause.reason === 'too_many_proofs') throw cause;
      throw new AuthError('replay_store_unavailable', { cause });
    }
    if (isNew !== true) throw invalidProof('the proof was used before');
  }

  return { verify, nonce: () => nonces?.make() };
}

/** Without query, without tokens, and without characters that could forge a line of a log. */
function loggable(target: string): string {
  return escapeUnsafe(loggablePath(target));
}

function proofOf({ headers }: PossessionRequest): string {
  const proof = ownValue(headers, 'dpop');
  // node:http joins repeated headers with a comma, which no proof contains.
  if (typeof proof === 'string' && proof !== '') return proof;
  throw invalidProof('the DPoP header is missing');
}
