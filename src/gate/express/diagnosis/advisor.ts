import type { AuthError } from '../../core/errors';
import { silentLogger } from '../../core/logger';
import { REASONS } from '../../core/reasons';
import { bearerToken } from '../../token/bearer';
import type { GateVerifier } from '../../verifier/gate-verifier';
import type { GateRequest } from '../request-state';
import type * as Advice from './advice';

const NONE_ACCEPTED = 'no token has been accepted so far: check the configuration';

/** Logs once what to change if the first tokens are refused for reasons that a wrong configuration causes. */
export class ConfigurationAdvisor {
  /** Whether a token was accepted, or the advice was given. With several issuers a token does not show which one is meant. */
  isDone: boolean;
  readonly #verifier: GateVerifier;

  constructor(verifier: GateVerifier) {
    const { issuers, logger } = verifier.settings;
    this.isDone = issuers.length > 1 || logger === silentLogger;
    this.#verifier = verifier;
  }

  /** Takes a refusal into account. Never throws. */
  note(req: GateRequest, error: AuthError): void {
    if (!this.isDone && REASONS[error.reason].configuration) this.#advise(req, error).catch(() => undefined);
  }

  async #advise(req: GateRequest, error: AuthError): Promise<void> {
    const { issuers, challenges, logger } = this.#verifier.settings;
    const [issuer] = issuers;
    const raw = bearerToken(req, challenges.length > 0);
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- most gates accept the first token
    const advice = issuer && (require('./advice') as typeof Advice).configurationAdvice(error, raw, issuer);
    // It quotes the token, so its signature has to be good: a made-up one must not suggest anything.
    if (!advice || !(await this.#verifier.isSigned(raw)) || this.isDone) return;
    this.isDone = true;
    logger.warn({ issuer: issuer.issuer, reason: error.reason, ...advice }, NONE_ACCEPTED);
  }
}
