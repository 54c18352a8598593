import type { AuthError } from '../core/auth-error';
import type { Reason } from '../core/reasons';
import type { Logger } from '../core/logger';
import type { Auth } from './auth';
import { pathOf, requestIdOf } from './http';
import type { GateRequest } from './http';

/** What a gate or a guard decided about one request; for operators. Holds no token. */
export interface Decision {
  readonly outcome: 'authenticated' | 'anonymous' | 'refused';
  /** Present when refused. */
  readonly reason?: Reason;
  /** HTTP status, present when refused. */
  readonly status?: number;
  /** The refusal with `cause` and `privateDetail`. */
  readonly error?: AuthError;
  /** Present when the token was good, also when a guard then refused. */
  readonly auth?: Auth;
  readonly method: string;
  /** Path without its query, and without anything that can be a token. */
  readonly path: string;
  readonly requestId?: string;
}

/** What `decisionReporter` is told; method, path and request id it reads from the request. */
export type DecisionFacts = Omit<Decision, 'method' | 'path' | 'requestId'>;

/** Makes the function that tells the operators: refusals to the log, everything to `onDecision`. */
export function decisionReporter(settings: {
  readonly logger: Logger;
  readonly onDecision: ((decision: Decision) => void) | undefined;
}): (req: GateRequest, facts: DecisionFacts) => void {
  const { logger, onDecision } = settings;

  function logRefusal(decision: Decision): void {
    const { reason, status, error, auth, method, path, requestId } = decision;
    const fields = { reason, status, method, path, clientId: auth?.clientId, requestId, detail: error?.privateDetail };
    logger.info(fields, 'request refused');
  }

  return function report(req, facts) {
    if (facts.outcome !== 'refused' && !onDecision) return;
    const requestId = requestIdOf(req);
    const decision: Decision = {
      ...facts,
      method: req.method ?? '',
      path: pathOf(req),
      ...(requestId !== undefined && { requestId }),
    };
    if (decision.outcome === 'refused') logRefusal(decision);
    try {
      onDecision?.(decision);
    } catch (error) {
      // An observer must not decide: what it throws changes no answer.
      logger.error({ error: error instanceof Error ? error.message : 'no error object' }, 'onDecision threw');
    }
  };
}
