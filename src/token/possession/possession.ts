import { createHash } from 'node:crypto';
import { AuthError } from '../../core/auth-error';
import type { Clock } from '../../core/clock';
import { ownValue } from '../../core/objects';
import { certificateReader } from './client-certificate';
import type { MtlsSettings } from './client-certificate';
import { dpopNonces } from './dpop-nonce';
import type { DpopSettings } from './dpop-options';
import { accessTokenHash, invalidProof, verifyProof } from './dpop-proof';
import type { DpopProof } from './dpop-proof';
import { memoryReplayStore } from './replay-store';
import { comparableUrl, requestUrl, usesDpop } from './request';
import type { PossessionRequest } from './request';

/** What proofs of possession are checked against. */
export interface PossessionSettings {
  readonly dpop: DpopSettings | undefined;
  readonly mtls: MtlsSettings | undefined;
  /** The issuers; the largest of their clock tolerances applies to proofs. */
  readonly issuers: readonly { readonly clockToleranceMs: number }[];
  readonly clock: Clock;
}

/** Checks that the caller holds the key that its token is bound to. */
export interface PossessionVerifier {
  /**
   * Checks the proofs of a request whose token is good (RFC 9449 section 7, RFC 8705 section 3). Rejects with an AuthError
   * `sender_constrained`, `binding_required`, `wrong_binding`, `invalid_dpop_proof`, `dpop_nonce_required` or
   * `replay_store_unavailable`.
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
  const { dpop, mtls } = settings;
  if (!dpop && !mtls) return undefined;
  const proofs = dpop && dpopVerifier(dpop, settings);
  const certificates = mtls && { ...mtls, read: certificateReader(mtls) };
  return {
    async verify(request, token, claims) {
      const confirmation = ownValue(claims, 'cnf');
      if (certificates) {
        const bound = ownValue(confirmation, 'x5t#S256');
        if (bound !== undefined) checkBinding(bound, certificates.read(request));
        else if (certificates.required) throw new AuthError('binding_required');
      }
      if (!proofs) return undefined;
      const bound = ownValue(confirmation, 'jkt');
      if (usesDpop(request)) {
        if (bound === undefined) throw new AuthError('binding_required');
        return proofs.verify(request, token, bound);
      }
      if (bound !== undefined) {
        throw new AuthError('sender_constrained', { privateDetail: 'the token came with the Bearer scheme' });
      }
      if (proofs.required) throw new AuthError('binding_required');
      return undefined;
    },
    nonce: () => proofs?.nonce(),
  };
}

function checkBinding(bound: unknown, proven: string | undefined): void {
  if (proven === undefined) {
    throw new AuthError('sender_constrained', { privateDetail: 'the request has no client certificate' });
  }
  if (bound !== proven) throw new AuthError('wrong_binding');
}

function dpopVerifier(settings: DpopSettings, { clock, issuers }: PossessionSettings) {
  const clockToleranceMs = Math.max(...issuers.map((issuer) => issuer.clockToleranceMs));
  const { baseUrl, required, proofMaxAgeMs } = settings;
  const algorithms = new Set(settings.algorithms);
  const replays = settings.replayStore ?? memoryReplayStore({ clock });
  const nonces = settings.nonce && dpopNonces(clock, settings.nonce === true ? undefined : settings.nonce.secret);

  async function verify(request: PossessionRequest, token: string, bound: unknown): Promise<string | undefined> {
    const proof = verifyProof(proofOf(request), algorithms, bound);
    if (proof.method !== request.method) throw invalidProof('htm is not the method of the request');
    const url = requestUrl(baseUrl, request.originalUrl ?? request.url ?? '');
    if (url === undefined || comparableUrl(proof.url) !== url) throw invalidProof(`htu is not ${url}`);
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
      isNew = await replays.remember(name, untilMs);
    } catch (cause) {
      throw new AuthError('replay_store_unavailable', { cause });
    }
    if (isNew !== true) throw invalidProof('the proof was used before');
  }

  return { required, verify, nonce: () => nonces?.make() };
}

function proofOf({ headers }: PossessionRequest): string {
  const proof = ownValue(headers, 'dpop');
  // node:http joins repeated headers with a comma, which no proof contains.
  if (typeof proof === 'string' && proof !== '') return proof;
  throw invalidProof('the DPoP header is missing');
}
