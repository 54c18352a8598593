import type { IncomingMessage } from 'node:http';
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

/** Told about every decision. The request is the one decided about: its headers hold the token, log none of them. */
export type DecisionObserver = (decision: Decision, request: IncomingMessage) => void;

/** Tells the operators: refusals to the log, everything to `onDecision`. */
export interface Reporter {
  /** Absent where nobody wants to know: then a request that passes costs nothing here. */
  readonly passed: ((req: GateRequest, auth: Auth | undefined) => void) | undefined;
  refused(req: GateRequest, error: AuthError, auth: Auth | undefined): void;
}

/** Makes the reporter of a gate. */
export function decisionReporter(settings: {
  readonly logger: Logger;
  readonly onDecision: DecisionObserver | undefined;
}): Reporter {
  const { logger, onDecision } = settings;

  function logRefusal(decision: Decision): void {
    const { reason, status, error, auth, method, path, requestId } = decision;
    const fields = { reason, status, method, path, clientId: auth?.clientId, requestId, detail: error?.privateDetail };
    logger.info(fields, 'request refused');
  }

  function tell(req: GateRequest, decision: Decision): void {
    try {
      onDecision?.(decision, req);
    } catch (error) {
      // An observer must not decide: what it throws changes no answer.
      logger.error({ error: error instanceof Error ? error.message : 'no error object' }, 'onDecision threw');
    }
  }

  return {
    passed:
      onDecision &&
      ((req, auth) => {
        tell(req, { ...(auth ? { outcome: 'authenticated', auth } : { outcome: 'anonymous' }), ...requestFacts(req) });
      }),
    refused(req, error, auth) {
      const { reason, status } = error;
      const decision: Decision = {
        ...{ outcome: 'refused', reason, status, error, ...(auth && { auth }) },
        ...requestFacts(req),
      };
      logRefusal(decision);
      tell(req, decision);
    },
  };
}

function requestFacts(req: GateRequest): Pick<Decision, 'method' | 'path' | 'requestId'> {
  const requestId = requestIdOf(req);
  return { method: req.method ?? '', path: pathOf(req), ...(requestId !== undefined && { requestId }) };
}
