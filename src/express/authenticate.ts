import type { ServerResponse } from 'node:http';
import { AuthError } from '../core/auth-error';
import { readSettings } from '../settings/settings';
import { bearerToken } from '../token/bearer';
import type { Auth } from './auth';
import type { AuthenticateOptions } from './authenticate-options';
import { authenticateOptions } from './environment';
import { decisionReporter } from './decision';
import type { GateRequest, Middleware } from './http';
import { judge } from './judge';
import type { GateStatus, Judge } from './judge';
import { resourceMetadataUrl } from './metadata';
import { openPassage, passageOf } from './passage';
import type { PassageGate } from './passage';
import { readGateOptions } from './read-options';
import { refusalSender } from './refusals';
import { showAuth } from './request-auth';
import { sendInternalError } from './respond';
import { bearerCheck } from './strategy';
import { holdBackUnguarded, warnUnguarded } from './unguarded';

/** The middleware that `authenticate()` makes. */
export interface Gate extends Middleware {
  /** Whether requests without a token pass; route audits hold it against openapi.yaml. */
  readonly optional: boolean;
  /** Resolves once keys and generations are there; never rejects. Requests before that wait or get 503. */
  ready(): Promise<void>;
  /** State of keys and generations, for health checks. */
  status(): GateStatus;
  /** Stops timers and connections. Requests afterwards are decided with what is known. */
  close(): Promise<void>;
}

const judges = new WeakMap<Middleware, Judge>();

/**
 * Makes the middleware that authenticates every request by its bearer token (RFC 6750, RFC 9068) and sets `req.auth`.
 * Refuses by default: whatever cannot be decided is no pass.
 *
 * @param options - without them the `TILLGATE_*` variables are read
 * @throws TypeError when an option is wrong
 * @throws ConfigurationError when a variable is wrong
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { authenticate, requireScope } from 'tillgate';
 *
 * const app = express();
 * app.use('/v1', authenticate({ issuer: 'https://login.example.com', audience: 'https://api.example.com' }));
 * app.get('/v1/orders', requireScope('orders:read'), (req, res) => res.json({ caller: req.auth?.clientId }));
 * ```
 */
export function authenticate(options?: AuthenticateOptions): Gate {
  const settings = readGateOptions(options === undefined ? authenticateOptions(readSettings()) : options);
  const { logger, unguarded, optional, resource } = settings;
  const report = decisionReporter(settings);
  const sendRefusal = refusalSender({
    realm: settings.realm,
    exposeReasons: settings.exposeReasons,
    resourceMetadata: resource && resourceMetadataUrl(resource),
  });
  const passing: PassageGate = { logger, unguarded, refuse };
  const tokens = judge(settings);
  const throughPassport = bearerCheck((token) => tokens.verify(token));

  function authenticate(req: GateRequest, res: ServerResponse, next: (error?: unknown) => void): void {
    let token: string;
    let auth: Auth | undefined;
    try {
      token = bearerToken(req);
      auth = tokens.recall(token);
    } catch (error) {
      if (optional && error instanceof AuthError && error.reason === 'missing_token') admit(req, res, undefined, next);
      else fail(req, res, error);
      return;
    }
    if (auth) return admit(req, res, auth, next);
    throughPassport(token, (error, verified) => {
      try {
        if (verified) admit(req, res, verified, next);
        else fail(req, res, error);
      } catch (thrown) {
        // Express catches what is thrown before a middleware returns; here nobody would, and the process would end.
        next(thrown);
      }
    });
  }

  function admit(req: GateRequest, res: ServerResponse, auth: Auth | undefined, next: () => void): void {
    const before = passageOf(req);
    const passage = openPassage(req, passing, auth);
    if (auth) showAuth(req, auth);
    holdBackUnguarded(res, passage, before);
    report.passed?.(req, auth);
    next();
    warnUnguarded(req, res, passage);
  }

  function refuse(req: GateRequest, res: ServerResponse, error: AuthError): void {
    // There is an identity when a guard behind the gate refuses a caller whose token was good.
    report.refused(req, error, passageOf(req)?.auth);
    sendRefusal(req, res, error);
  }

  function fail(req: GateRequest, res: ServerResponse, error: unknown): void {
    if (error instanceof AuthError) return refuse(req, res, error);
    logger.error({ error: error instanceof Error ? error.stack : String(error) }, 'a request could not be decided');
    sendInternalError(req, res);
  }

  const gate = Object.assign(authenticate, {
    optional,
    ready: () => tokens.ready(),
    status: () => tokens.status(),
    close: () => tokens.close(),
  });
  judges.set(gate, tokens);
  return gate;
}

/** The judge behind a gate, for `explain()`. */
export function judgeOf(gate: Gate): Judge {
  const found = judges.get(gate);
  if (!found) throw new TypeError('explain(): option "gate" must be what authenticate() returned');
  return found;
}
