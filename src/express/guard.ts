import type { ServerResponse } from 'node:http';
import { AuthError } from '../core/auth-error';
import { consoleLogger } from '../core/logger';
import type { Auth } from './auth';
import { routeOf } from './http';
import type { GateRequest } from './http';
import { passageOf } from './passage';
import { sendInternalError } from './respond';

/** What one guard decides by. */
export interface Guard {
  /** As developers know it, for the log. */
  readonly name: string;
  /** Answers the refusal, or `undefined` to let the request pass. */
  readonly judge: (auth: Auth, req: GateRequest) => AuthError | undefined;
}

/**
 * Runs one guard on a request. A request that no gate has seen never passes: that is a mistake of the app, not of the
 * caller, so it is a 500 whose log names the route.
 */
export function runGuard(guard: Guard, req: GateRequest, res: ServerResponse, next: (error?: unknown) => void): void {
  const passage = passageOf(req);
  if (!passage) {
    consoleLogger.error({ route: routeOf(req) }, `${guard.name} stands on a route without authenticate() before it`);
    return sendInternalError(req, res);
  }
  const { auth, gate } = passage;
  if (!auth) return gate.refuse(req, res, new AuthError('missing_token'));
  const refusal = guard.judge(auth, req);
  if (refusal) return gate.refuse(req, res, refusal);
  passage.allowed = true;
  next();
}
