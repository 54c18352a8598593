import type { IncomingMessage } from 'node:http';
import type { AuthError } from '../core/auth-error';
import type { Logger } from '../core/logger';
import type { Auth, Decision } from '../gate/decision';
import type { GateRequest } from './request';
import { pathOf, requestIdOf } from './request';

/** Reports refusals to the log, and every decision to `onDecision`. */
export interface DecisionReporter {
  /** Absent without `onDecision`. */
  readonly accepted: ((req: GateRequest, auth: Auth | undefined) => void) | undefined;
  refused(req: GateRequest, error: AuthError, auth: Auth | undefined): void;
}

interface DecisionReporterOptions {
  readonly logger: Logger;
  readonly onDecision: ((decision: Decision, request: IncomingMessage) => unknown) | undefined;
}

/** Makes the reporter of a gate. */
export function decisionReporter({ logger, onDecision }: DecisionReporterOptions): DecisionReporter {
  /** An observer decides nothing: whether it throws or rejects, the response stays the same. */
  function observe(req: GateRequest, decision: Decision): void {
    try {
      const result = onDecision?.(decision, req);
      if (result instanceof Promise) result.catch(logFailure);
    } catch (error) {
      logFailure(error);
    }
  }

  function logFailure(error: unknown): void {
    logger.error({ error: error instanceof Error ? error.message : 'not an Error' }, 'onDecision failed');
  }

  return {
    accepted:
      onDecision &&
      ((req, auth) => {
        observe(req, {
          ...(auth ? { outcome: 'authenticated', auth } : { outcome: 'anonymous' }),
          ...requestFacts(req),
        });
      }),
    refused(req, error, auth) {
      const { reason, status, privateDetail: detail } = error;
      const facts = requestFacts(req);
      const { method, path, requestId } = facts;
      const { issuer, clientId } = auth ?? {};
      const fields = { reason, status, method, path, issuer, clientId, requestId, detail };
      logger.info(fields, 'request refused');
      observe(req, { outcome: 'refused', reason, status, error, ...(auth && { auth }), ...facts });
    },
  };
}

function requestFacts(req: GateRequest): Pick<Decision, 'method' | 'path' | 'requestId'> {
  const requestId = requestIdOf(req);
  return { method: req.method ?? '', path: pathOf(req), ...(requestId !== undefined && { requestId }) };
}
