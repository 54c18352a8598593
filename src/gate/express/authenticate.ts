import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { GateStatus } from '../core/gate-status';
import { ownValue } from '../core/objects';
import { option, readOptions } from '../core/options';
import type { Reason } from '../core/reasons';
import type * as Env from '../env/gate-options';
import type { Auth, AuthenticateOptions } from '../verifier/options';
import { readGateOptions, type GateInternals } from '../verifier/read-options';
import { GateVerifier, rememberGate } from '../verifier/gate-verifier';
import { GateEnforcer, triableGates } from './enforcer';
import { registerCopy, type GateRequest, type Middleware } from './request-state';

/** The middleware that `authenticate()` makes. */
export interface Gate extends Middleware {
  /** Whether requests without a token are accepted; route audits compare it with openapi.yaml. */
  readonly optional: boolean;
  /**
   * Resolves once keys and generations are available; requests before that wait or get 503. Without `timeoutMs` it waits
   * as long as that takes and never rejects.
   *
   * @param options - `timeoutMs`: longest wait in ms; then it rejects with an Error that names what is not available, and
   *   why. The gate keeps trying.
   * @throws TypeError when `timeoutMs` is not a number of milliseconds
   */
  ready(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
  /**
   * Decides about a request without a response, as the middleware does: for an upgrade to a WebSocket, and for frameworks
   * without middleware. Afterwards `authOf(req)` and guards know the caller. While it decides, the gate listens for errors
   * of the socket, because Node does not after `upgrade`. Then the caller has to, before its next `await`. Of a request of
   * the Fetch API only the result says who the caller is.
   *
   * @returns the caller; `undefined` for a request without a token where the gate is `optional`
   * @throws TypeError when it is not a request
   * @throws AuthError with the `status` and `headers` to respond with; `refuseUpgrade()` writes them to a socket
   */
  verify(req: IncomingMessage | Http2ServerRequest | Request): Promise<Auth | undefined>;
  /**
   * Calls `end` once, when a request with the token of this caller would be refused: at its `exp`, when its key is removed,
   * within milliseconds of a change of its credential, while generations are not available; or when the gate is closed.
   * For what stays open longer than a request, such as a WebSocket.
   *
   * Call it in the turn in which you begin to listen for the close of the connection: what has closed before stays held.
   *
   * @param auth - the caller, as this gate accepted it: `req.auth`
   * @returns lets go of it, to be called when the connection closes by itself
   * @throws TypeError when this gate has not accepted the caller
   */
  hold(auth: Auth, end: (reason: Reason | 'gate_closed') => void): () => void;
  /** State of keys and generations, for health checks. */
  status(): GateStatus;
  /** Stops timers and connections. Later requests are decided with the keys and floors known by then. */
  close(): Promise<void>;
}

/**
 * Makes the middleware that authenticates every request by its bearer token (RFC 6750, RFC 9068) and assigns
 * `req.auth`. Refuses by default: a request that cannot be decided is not accepted.
 *
 * @param options - where they have no member `issuer` or `issuers`, they are added to what the `TILLGATE_*` variables say; each
 *   that is not `undefined` replaces the value of its variable
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
  return createGate(options);
}

/** `authenticate()` with what only tests and measurements set. */
export function createGate(options: AuthenticateOptions = {}, internals?: Partial<GateInternals>): Gate {
  const settings = readGateOptions(completeOptions(options), internals);
  const verifier = new GateVerifier(settings);
  registerCopy();
  const enforcer = new GateEnforcer(verifier);
  const gate: Gate = Object.assign(enforcer.middleware() as Middleware, {
    optional: settings.optional,
    async ready(given: { readonly timeoutMs?: number | undefined } = {}) {
      const { timeoutMs } = readOptions('ready', given, { timeoutMs: option.number({ unit: 'milliseconds', min: 1 }) });
      await verifier.ready(timeoutMs);
    },
    verify: (req: GateRequest | Request) => enforcer.verify(req),
    hold: (auth: Auth, end: Parameters<Gate['hold']>[1]) => enforcer.hold(auth, end),
    status: () => verifier.status(),
    close() {
      enforcer.close();
      return verifier.close();
    },
  });
  rememberGate(gate, verifier);
  triableGates.set(gate, enforcer);
  return gate;
}

/** The options, with what the variables say where they do not name the issuer. Loaded only there: most gates are given it. */
function completeOptions(options: AuthenticateOptions): AuthenticateOptions {
  if (['issuer', 'issuers'].some((name) => ownValue(options, name) !== undefined)) return options;
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- loaded by the first call that needs it
  const { besideVariables } = require('../env/gate-options') as typeof Env;
  return besideVariables(options);
}
