import type { ServerResponse } from 'node:http';
import { AuthError } from '../core/auth-error';
import { consoleLogger } from '../core/logger';
import type { Auth } from './auth';
import { routeOf } from './http';
import type { GateRequest } from './http';
import { passageOf } from './passage';
import { sendInternalError } from './respond';

/**
 * Runs one guard on a request: `judge` answers the refusal, or `undefined` to let it pass. A request that no gate has
 * seen never passes: that is a mistake of the app, not of the caller, so it is a 500 whose log names the route.
 */
export function guard(
  name: string,
  req: GateRequest,
  res: ServerResponse,
  next: (error?: unknown) => void,
  judge: (auth: Auth, req: GateRequest) => AuthError | undefined,
): void {
  const passage = passageOf(req);
  if (!passage) {
    consoleLogger.error({ route: routeOf(req) }, `${name} stands on a route without authenticate() before it`);
    return sendInternalError(req, res);
  }
  if (!passage.auth) return passage.refuse(req, res, new AuthError('missing_token'));
  const refusal = judge(passage.auth, req);
  if (refusal) return passage.refuse(req, res, refusal);
  passage.allowed = true;
  next();
}
