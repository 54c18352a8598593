import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import { AuthError } from '../core/errors';
import type { GateStatus } from '../core/status';
import { errorText } from '../core/logger';
import { ownValue } from '../core/objects';
import { option, readOptions } from '../core/options';
import type { Reason } from '../core/reasons';
import type * as Env from '../env/settings';
import type * as Held from '../verifier/held';
import type { Auth, AuthenticateOptions } from '../verifier/options';
import { readGateOptions } from '../verifier/read-options';
import type { GateInternals } from '../verifier/read-options';
import { GateVerifier, rememberGate } from '../verifier/verifier';
import { resourceMetadataUrl } from '../core/urls';
import { decisionOf, startTiming } from './decision';
import type { Accepted, Timing } from './decision';
import { scopesOfRoute } from './guard';
import { decisionRecorder } from './recorder';
import { letTryGate } from './trials';
import { addressOf, asNodeRequest, callerOf, openState, registerCopy } from './request-state';
import type { GateRequest, Middleware, Next, RequestState } from './request-state';
import { asObject, handleRejection, presentTo, refusalSender, sendInternalError, sendRefusal } from './respond';
import { watchGuards } from './unguarded';

/* eslint-disable @typescript-eslint/no-require-imports -- loaded by the first call that needs it */

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
  const { logger, unguarded, optional, refusals, resource, onDecision } = settings;
  const { realm, exposeReasons, problemTypes, challengeScopes, possession, possessionRequired } = settings;
  const [challenge] = settings.challenges;
  const presentation = {
    ...{ realm, exposeReasons, problemTypes, challengeScopes },
    resourceMetadata: resource === undefined ? undefined : resourceMetadataUrl(resource),
    // Where every token needs a proof of its own scheme, none may come as a bearer token.
    dpop: challenge && {
      algorithms: challenge.algorithms.join(' '),
      used: possessionRequired && possession.length === 1,
    },
  };
  const sendPrepared = refusalSender(presentation);
  const recorder = decisionRecorder(verifier);
  const decide = decisionOf(verifier);
  const held = heldCallers(verifier, settings);
  const requestGate: RequestState['gate'] = {
    logger,
    unguarded,
    refusals,
    problemTypes,
    refuse: respond,
    hold: held.hold,
  };

  function authenticate(req: GateRequest, res: ServerResponse, next: Next): void {
    const timing = startTiming();
    let decided: ReturnType<typeof decide>;
    try {
      decided = decide(req, callerOf, timing);
    } catch (error) {
      return refuse(req, res, error, next, timing);
    }
    if (!(decided instanceof Promise)) return accept(req, res, decided, next, timing);
    const concluded = decided.then(
      (accepted) => accept(req, res, accepted, next, timing),
      (error: unknown) => refuse(req, res, error, next, timing),
    );
    handleRejection(concluded, { req, res, next, logger });
  }

  function accept(
    req: GateRequest,
    res: ServerResponse,
    { auth, nonce }: Accepted,
    next: Next,
    timing: Timing | undefined,
  ): void {
    setNonce(res, nonce);
    watchGuards(res, remember(req, auth, timing), next);
  }

  function remember(req: GateRequest, auth: Auth | undefined, timing: Timing | undefined): RequestState {
    const state = openState(req, requestGate, auth);
    req.auth = auth;
    if (auth) recorder.advisor.isDone = true;
    if (timing || onDecision) recorder.accepted(req, auth, timing);
    return state;
  }

  /** The decision about a request that has no response. */
  async function verify(given: GateRequest | Request): Promise<Auth | undefined> {
    const req = asNodeRequest(given);
    const wasOpen = req.socket?.destroyed === false;
    const auth = await ignoringSocketErrors(req, () => decideWithoutResponse(req));
    // A session can outlive the connection of its first request; an upgraded connection is the session.
    if (!req.upgrade || !wasOpen || !req.socket.destroyed) return auth;
    const gone = new AuthError('too_many_unknown_keys', { privateDetail: 'the client has disconnected' });
    throw presentTo(req, gone, presentation);
  }

  async function decideWithoutResponse(req: GateRequest): Promise<Auth | undefined> {
    const timing = startTiming();
    try {
      const { auth } = await decide(req, addressOf, timing);
      return remember(req, auth, timing).auth;
    } catch (error) {
      openState(req, requestGate, undefined, error instanceof AuthError ? error : undefined);
      if (!(error instanceof AuthError)) {
        logUndecided(error);
        throw error;
      }
      recorder.refused(req, error, undefined, timing);
      throw presentTo(req, error, presentation);
    }
  }

  function logUndecided(error: unknown): void {
    logger.error({ error: errorText(error) }, 'a request could not be decided');
  }

  function refuse(req: GateRequest, res: ServerResponse, error: unknown, next: Next, timing: Timing | undefined): void {
    const isRefusal = error instanceof AuthError;
    if (!isRefusal) logUndecided(error);
    if (refusals === 'respond') {
      return isRefusal ? respond(req, res, error, next, undefined, timing) : sendInternalError(req, res);
    }
    // The app may go on: then what an earlier gate has accepted is not enough for a guard, and a 2xx needs one.
    const state = openState(req, requestGate, undefined, isRefusal ? error : undefined);
    state.allowed = false;
    watchGuards(res, state, () => {
      if (isRefusal) respond(req, res, error, next, undefined, timing);
      else next(asObject(error));
    });
  }

  /**
   * The one place where a request is refused, by the gate or by a guard after it.
   *
   * @param auth - the caller that a guard refuses: its token was good
   */
  function respond(
    req: GateRequest,
    res: ServerResponse,
    error: AuthError,
    next: Next,
    auth?: Auth,
    timing?: Timing,
  ): void {
    recorder.refused(req, error, auth, timing);
    const routeScopes = error.status === 401 && req.route && !challengeScopes ? scopesOfRoute(req) : undefined;
    const presented = routeScopes ? { ...presentation, challengeScopes: routeScopes } : presentation;
    if (refusals === 'next') return next(presentTo(req, error, presented));
    if (routeScopes) sendRefusal(req, res, presentTo(req, error, presented));
    else sendPrepared(req, res, error);
  }

  const gate: Gate = Object.assign(authenticate as Middleware, {
    optional,
    async ready(options: { readonly timeoutMs?: number | undefined } = {}) {
      const { timeoutMs } = readOptions('ready', options, {
        timeoutMs: option.number({ unit: 'milliseconds', min: 1 }),
      });
      await verifier.ready(timeoutMs);
    },
    verify,
    hold: (auth: Auth, end: Parameters<Gate['hold']>[1]) => held.hold(auth, end),
    status: () => verifier.status(),
    close() {
      recorder.close();
      trials.close();
      held.close();
      return verifier.close();
    },
  });
  rememberGate(gate, verifier);
  const trials = letTryGate(gate, { gate: requestGate, settings, decide, advisor: recorder.advisor });
  return gate;
}

/** What holds callers, loaded when the first one is. */
function heldCallers(...given: ConstructorParameters<typeof Held.HeldCallers>) {
  let held: Held.HeldCallers | undefined;
  let isClosed = false;
  const hold: Held.HeldCallers['hold'] = (...call) => {
    held ??= new (require('../verifier/held') as typeof Held).HeldCallers(...given);
    if (isClosed) held.close();
    return held.hold(...call);
  };
  return { hold, close: () => ((isClosed = true), held?.close()) };
}

/** The options, with what the variables say where they do not name the issuer. Loaded only there: most gates are given it. */
function completeOptions(options: AuthenticateOptions): AuthenticateOptions {
  if (['issuer', 'issuers'].some((name) => ownValue(options, name) !== undefined)) return options;
  const { besideVariables } = require('../env/settings') as typeof Env;
  return besideVariables(options);
}

/** RFC 9449 section 8: the client uses it in its next proof. */
function setNonce(res: ServerResponse, nonce: string | undefined): void {
  if (nonce !== undefined && !res.headersSent) res.setHeader('DPoP-Nonce', nonce);
}

/** What is used of the socket of a request; a fake request has none. */
interface Emitter {
  on(event: 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
}

/** Number of undecided requests by their socket: pipelined ones share it, and one listener is enough for all. */
const undecided = new WeakMap<Emitter, number>();
const ignore = (): void => undefined;

/**
 * Runs `decide` with a listener for errors of the socket: Node takes its own off before the event `upgrade`, and a client that
 * resets the connection would end the process. The listener is off when the result settles, so that none is left on a connection
 * that is kept alive: the caller adds its own before it awaits anything else.
 */
async function ignoringSocketErrors<Value>(req: GateRequest, decide: () => Promise<Value>): Promise<Value> {
  const socket = socketOf(req);
  if (!socket) return decide();
  const others = undecided.get(socket) ?? 0;
  undecided.set(socket, others + 1);
  if (others === 0) socket.on('error', ignore);
  try {
    return await decide();
  } finally {
    const left = (undecided.get(socket) as number) - 1;
    undecided.set(socket, left);
    if (left === 0) socket.off('error', ignore);
  }
}

/** The socket that nothing else may listen to. A request of HTTP/2 shares its own with others, and Node listens to that. */
function socketOf({ httpVersionMajor, socket }: GateRequest): Emitter | undefined {
  const isEmitter = typeof socket?.on === 'function' && typeof socket.off === 'function';
  return isEmitter && httpVersionMajor !== 2 ? socket : undefined;
}
