import type { ServerResponse } from 'node:http';
import type { AuthError, Presentation, Problem } from '../core/auth-error';
import type { Reason } from '../core/reasons';
import { requestIdOf } from './http';
import type { GateRequest } from './http';
import { sendRefusal, writeProblem } from './respond';

/** Answers with a refusal. */
export type RefusalSender = (req: GateRequest, res: ServerResponse, error: AuthError) => void;

/** What is the same for all refusals with one reason and, where there are any, one list of scopes. */
interface Prepared {
  readonly reason: Reason;
  readonly headers: Readonly<Record<string, string>>;
  readonly problem: Problem;
  /** The problem as it is written where the request has no id, and its length in bytes. */
  readonly text: string;
  readonly length: number;
}

/** Answers refusals as one gate presents them: challenge and body of each kind are made once. */
export function refusalSender(presentation: Presentation): RefusalSender {
  const byReason = new Map<Reason, Prepared>();
  const byScopes = new WeakMap<readonly string[], Prepared>();

  function prepare(error: AuthError): Prepared {
    const presented = error.presentedAs(presentation);
    const problem = presented.problem();
    const text = JSON.stringify(problem);
    return { reason: error.reason, headers: presented.headers, problem, text, length: Buffer.byteLength(text) };
  }

  /** A list of scopes stands for itself where it cannot change, as those of the guards. */
  function preparedFor(error: AuthError): Prepared {
    const { reason, requiredScopes } = error;
    const known = requiredScopes ? byScopes.get(requiredScopes) : byReason.get(reason);
    if (known?.reason === reason) return known;
    const prepared = prepare(error);
    if (!requiredScopes) byReason.set(reason, prepared);
    else if (Object.isFrozen(requiredScopes)) byScopes.set(requiredScopes, prepared);
    return prepared;
  }

  return function send(req, res, error) {
    // When to come back differs from one outage to the next.
    if (error.status === 503) return sendRefusal(req, res, error.presentedAs(presentation));
    const { headers, problem, text, length } = preparedFor(error);
    const requestId = requestIdOf(req);
    if (requestId === undefined) writeProblem(res, error.status, headers, text, length);
    else writeProblem(res, error.status, headers, JSON.stringify({ ...problem, request_id: requestId }));
  };
}
