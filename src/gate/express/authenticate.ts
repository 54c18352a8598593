import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import { AuthError } from '../core/errors';
import type { GateStatus } from '../core/gate-status';
import { errorText } from '../core/logger';
import { ownValue } from '../core/objects';
import { option, readOptions } from '../core/options';
import type { Reason } from '../core/reasons';
import type { Presentation } from '../core/refusal';
import { resourceMetadataUrl } from '../core/urls';
import type * as Env from '../env/settings';
import type * as Held from '../verifier/held';
import type { Auth, AuthenticateOptions } from '../verifier/options';
import { readGateOptions, type GateInternals, type GateSettings } from '../verifier/read-options';
import { GateVerifier, rememberGate } from '../verifier/verifier';
import { decisionMaker, startTiming, type Accepted, type Decide, type Timing } from './decision';
import { scopesOfRoute } from './guard';
import { decisionRecorder } from './recorder';
import { addressOf, asNodeRequest, callerOf, openState, registerCopy } from './request-state';
import type { GateRequest, Middleware, Next, RequestState } from './request-state';
import { asObject, handleRejection, presentTo, refusalSender, sendInternalError, sendRefusal } from './respond';
import { ignoringSocketErrors } from './socket-errors';
import { letTryGate } from './trials';
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
  const { logger, optional } = settings;
  const decide = decisionMaker(verifier);
  const requests = new RequestGate(verifier, decide);

  function authenticate(req: GateRequest, res: ServerResponse, next: Next): void {
    const timing = startTiming();
    let decided: ReturnType<typeof decide>;
    try {
      decided = decide(req, callerOf, timing);
    } catch (error) {
      return requests.turnAway(req, res, error, next, timing);
    }
    if (!(decided instanceof Promise)) return requests.accept(req, res, decided, next, timing);
    const concluded = decided.then(
      (accepted) => requests.accept(req, res, accepted, next, timing),
      (error: unknown) => requests.turnAway(req, res, error, next, timing),
    );
    handleRejection(concluded, { req, res, next, logger });
  }

  const gate: Gate = Object.assign(authenticate as Middleware, {
    optional,
    async ready(given: { readonly timeoutMs?: number | undefined } = {}) {
      const { timeoutMs } = readOptions('ready', given, { timeoutMs: option.number({ unit: 'milliseconds', min: 1 }) });
      await verifier.ready(timeoutMs);
    },
    verify: (req: GateRequest | Request) => requests.verify(req),
    hold: (auth: Auth, end: Parameters<Gate['hold']>[1]) => requests.hold(auth, end),
    status: () => verifier.status(),
    close() {
      trials.close();
      requests.close();
      return verifier.close();
    },
  });
  rememberGate(gate, verifier);
  const trials = letTryGate(gate, { gate: requests, settings, decide, advisor: requests.advisor });
  return gate;
}

/** Does what a gate has decided about requests, and about those that a guard after it refuses. */
export class RequestGate {
  readonly logger: GateSettings['logger'];
  readonly unguarded: GateSettings['unguarded'];
  readonly refusals: GateSettings['refusals'];
  readonly problemTypes: GateSettings['problemTypes'];
  readonly #verifier: GateVerifier;
  readonly #decide: Decide;
  readonly #presentation: Presentation;
  readonly #sendPrepared: ReturnType<typeof refusalSender>;
  readonly #recorder: ReturnType<typeof decisionRecorder>;
  #held: Held.HeldCallers | undefined;
  #isClosed = false;

  constructor(verifier: GateVerifier, decide: Decide) {
    const { settings } = verifier;
    this.logger = settings.logger;
    this.unguarded = settings.unguarded;
    this.refusals = settings.refusals;
    this.problemTypes = settings.problemTypes;
    this.#verifier = verifier;
    this.#decide = decide;
    this.#presentation = presentationOfGate(settings);
    this.#sendPrepared = refusalSender(this.#presentation);
    this.#recorder = decisionRecorder(verifier);
  }

  get advisor(): ReturnType<typeof decisionRecorder>['advisor'] {
    return this.#recorder.advisor;
  }

  accept(req: GateRequest, res: ServerResponse, { auth, nonce }: Accepted, next: Next, timing?: Timing): void {
    setNonce(res, nonce);
    watchGuards(res, this.#remember(req, auth, timing), next);
  }

  #remember(req: GateRequest, auth: Auth | undefined, timing: Timing | undefined): RequestState {
    const state = openState(req, this, auth);
    req.auth = auth;
    if (auth) this.#recorder.advisor.isDone = true;
    if (timing || this.#verifier.settings.onDecision) this.#recorder.accepted(req, auth, timing);
    return state;
  }

  /** Responds to a request that could not be accepted, or hands the error to the app. */
  turnAway(req: GateRequest, res: ServerResponse, error: unknown, next: Next, timing?: Timing): void {
    const isRefusal = error instanceof AuthError;
    if (!isRefusal) this.#logUndecided(error);
    if (this.refusals === 'respond') {
      return isRefusal ? this.refuse(req, res, error, next, undefined, timing) : sendInternalError(req, res);
    }
    // The app may go on: then what an earlier gate has accepted is not enough for a guard, and a 2xx needs one.
    const state = openState(req, this, undefined, isRefusal ? error : undefined);
    state.allowed = false;
    watchGuards(res, state, () => {
      if (isRefusal) this.refuse(req, res, error, next, undefined, timing);
      else next(asObject(error));
    });
  }

  /**
   * The one place where a request is refused, by the gate or by a guard after it.
   *
   * @param auth - the caller that a guard refuses: its token was good
   */
  refuse(req: GateRequest, res: ServerResponse, error: AuthError, next: Next, auth?: Auth, timing?: Timing): void {
    this.#recorder.refused(req, error, auth, timing);
    const isOfRoute = error.status === 401 && req.route && !this.#presentation.challengeScopes;
    const challengeScopes = isOfRoute ? scopesOfRoute(req) : undefined;
    const presented = challengeScopes ? { ...this.#presentation, challengeScopes } : this.#presentation;
    if (this.refusals === 'next') return next(presentTo(req, error, presented));
    if (challengeScopes) sendRefusal(req, res, presentTo(req, error, presented));
    else this.#sendPrepared(req, res, error);
  }

  /** Decides about a request that has no response. */
  async verify(given: GateRequest | Request): Promise<Auth | undefined> {
    const req = asNodeRequest(given);
    const wasOpen = req.socket?.destroyed === false;
    const auth = await ignoringSocketErrors(req, () => this.#decideWithoutResponse(req));
    // A session can outlive the connection of its first request; an upgraded connection is the session.
    if (!req.upgrade || !wasOpen || !req.socket.destroyed) return auth;
    const gone = new AuthError('too_many_unknown_keys', { privateDetail: 'the client has disconnected' });
    throw presentTo(req, gone, this.#presentation);
  }

  async #decideWithoutResponse(req: GateRequest): Promise<Auth | undefined> {
    const timing = startTiming();
    try {
      const { auth } = await this.#decide(req, addressOf, timing);
      return this.#remember(req, auth, timing).auth;
    } catch (error) {
      openState(req, this, undefined, error instanceof AuthError ? error : undefined);
      if (!(error instanceof AuthError)) {
        this.#logUndecided(error);
        throw error;
      }
      this.#recorder.refused(req, error, undefined, timing);
      throw presentTo(req, error, this.#presentation);
    }
  }

  #logUndecided(error: unknown): void {
    this.logger.error({ error: errorText(error) }, 'a request could not be decided');
  }

  /** Calls `end` when the token of the caller is no longer accepted. */
  hold(...call: Parameters<Held.HeldCallers['hold']>): () => void {
    const { HeldCallers } = require('../verifier/held') as typeof Held;
    this.#held ??= new HeldCallers(this.#verifier, this.#verifier.settings);
    if (this.#isClosed) this.#held.close();
    return this.#held.hold(...call);
  }

  close(): void {
    this.#isClosed = true;
    this.#recorder.close();
    this.#held?.close();
  }
}

function presentationOfGate(settings: GateSettings): Presentation {
  const { realm, exposeReasons, problemTypes, challengeScopes, resource } = settings;
  const { challenges, possession, possessionRequired } = settings;
  const [challenge] = challenges;
  return {
    ...{ realm, exposeReasons, problemTypes, challengeScopes },
    resourceMetadata: resource === undefined ? undefined : resourceMetadataUrl(resource),
    // Where every token needs a proof of its own scheme, none may come as a bearer token.
    dpop: challenge && {
      algorithms: challenge.algorithms.join(' '),
      used: possessionRequired && possession.length === 1,
    },
  };
}

/** RFC 9449 section 8: the client uses it in its next proof. */
function setNonce(res: ServerResponse, nonce: string | undefined): void {
  if (nonce !== undefined && !res.headersSent) res.setHeader('DPoP-Nonce', nonce);
}

/** The options, with what the variables say where they do not name the issuer. Loaded only there: most gates are given it. */
function completeOptions(options: AuthenticateOptions): AuthenticateOptions {
  if (['issuer', 'issuers'].some((name) => ownValue(options, name) !== undefined)) return options;
  const { besideVariables } = require('../env/settings') as typeof Env;
  return besideVariables(options);
}
