import type { AuthError } from '../../core/errors';
import { silentLogger } from '../../core/logger';
import { REASONS } from '../../core/reasons';
import { bearerToken } from '../../token/bearer';
import type { GateVerifier } from '../../verifier/verifier';
import type { GateRequest } from '../request-state';
import type * as Advice from './advice';

/** Logs once what to change if the first tokens are refused for reasons that a wrong configuration causes. */
export interface ConfigurationAdvisor {
  /** Whether a token was accepted, or the advice was given. With several issuers a token does not show which one is meant. */
  isDone: boolean;
  /** Takes a refusal into account. Never throws. */
  readonly note: (req: GateRequest, error: AuthError) => void;
}

const NONE_ACCEPTED = 'no token has been accepted so far: check the configuration';

/** Makes the advisor of a gate. */
export function configurationAdvisor(verifier: GateVerifier): ConfigurationAdvisor {
  const { issuers, challenges, logger } = verifier.settings;
  const [issuer] = issuers;
  const advisor = {
    isDone: issuers.length > 1 || logger === silentLogger,
    note(req: GateRequest, error: AuthError): void {
      if (!advisor.isDone && REASONS[error.reason].configuration) advise(req, error).catch(() => undefined);
    },
  };

  async function advise(req: GateRequest, error: AuthError): Promise<void> {
    const raw = bearerToken(req, challenges.length > 0);
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- most gates accept the first token
    const advice = issuer && (require('./advice') as typeof Advice).configurationAdvice(error, raw, issuer);
    // It quotes the token, so its signature has to be good: a made-up one must not suggest anything.
    if (!advice || !(await verifier.isSigned(raw)) || advisor.isDone) return;
    advisor.isDone = true;
    logger.warn({ issuer: issuer.issuer, reason: error.reason, ...advice }, NONE_ACCEPTED);
  }

  return advisor;
}
