import type { AuthError } from '../core/errors';
import { REASONS } from '../core/reasons';
import type { GateVerifier } from '../gate/verifier';
import { configurationAdvice } from '../token/advice';
import { bearerToken } from '../token/bearer';
import type { GateRequest } from './request-state';

/** Logs once what to change if the first tokens are refused for reasons that a wrong configuration causes. */
export class ConfigurationAdvisor {
  readonly #verifier: Pick<GateVerifier, 'settings' | 'isSigned'>;
  /** Whether a token was accepted, or the advice was given. With several issuers a token does not show which one is meant. */
  isDone: boolean;

  constructor(verifier: Pick<GateVerifier, 'settings' | 'isSigned'>) {
    this.#verifier = verifier;
    this.isDone = verifier.settings.issuers.length > 1;
  }

  /** Takes a refusal into account. Never throws. */
  note(req: GateRequest, { reason }: AuthError): void {
    if (!this.isDone && REASONS[reason].configuration) this.#advise(req, reason).catch(() => undefined);
  }

  async #advise(req: GateRequest, reason: AuthError['reason']): Promise<void> {
    const { issuers, challenges, logger } = this.#verifier.settings;
    const [issuer] = issuers;
    const raw = bearerToken(req, challenges.length > 0);
    const advice = issuer && configurationAdvice(reason, raw, issuer);
    // It quotes the token, so its signature has to be good: a made-up one must not suggest anything.
    if (!advice || !(await this.#verifier.isSigned(raw)) || this.isDone) return;
    this.isDone = true;
    const message = 'no token has been accepted so far: check the configuration';
    logger.warn({ issuer: issuer.issuer, reason, ...advice }, message);
  }
}
