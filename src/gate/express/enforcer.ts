import type { ServerResponse } from 'node:http';
import { AuthError } from '../core/errors';
import { errorText } from '../core/logger';
import type { Presentation } from '../core/refusal';
import { resourceMetadataUrl } from '../core/urls';
import type * as Held from '../verifier/held';
import type { Auth } from '../verifier/options';
import type { GateSettings } from '../verifier/read-options';
import type { GateVerifier } from '../verifier/gate-verifier';
import { decisionMaker, startTiming, type Accepted, type Decide, type Timing } from './decision';
import { scopesOfRoute } from './guard';
import { DecisionRecorder } from './recorder';
import { addressOf, asNodeRequest, callerOf, openState } from './request-state';
import type { Enforcer, GateRequest, Next, RequestState } from './request-state';
import { asObject, handleRejection, presentTo, refusalSender, sendInternalError, sendRefusal } from './respond';
import { ignoringSocketErrors } from './socket-errors';
import { watchGuards } from './unguarded';

/** The gates that `reportOnly()` can try out, by their middlewares. */
export const triableGates = new WeakMap<object, GateEnforcer>();

/** Carries out what a gate has decided about requests, and refuses those that a guard after it does not allow. */
export class GateEnforcer implements Enforcer {
  readonly settings: GateSettings;
  readonly decide: Decide;
  readonly recorder: DecisionRecorder;
  readonly #verifier: GateVerifier;
  readonly #presentation: Presentation;
  readonly #sendPrepared: ReturnType<typeof refusalSender>;
  #held: Held.HeldCallers | undefined;
  #isClosed = false;
  readonly #closing: (() => void)[] = [];

  constructor(verifier: GateVerifier) {
    this.settings = verifier.settings;
    this.decide = decisionMaker(verifier);
    this.recorder = new DecisionRecorder(verifier);
    this.#verifier = verifier;
    this.#presentation = presentationOfGate(verifier.settings);
    this.#sendPrepared = refusalSender(this.#presentation);
  }

  /** Decides about each request, without a wait where it can. */
  middleware(): (req: GateRequest, res: ServerResponse, next: Next) => void {
    const { decide, settings } = this;
    const authenticate = (req: GateRequest, res: ServerResponse, next: Next): void => {
      const timing = startTiming();
      let decided: Accepted | Promise<Accepted>;
      try {
        decided = decide(req, callerOf, timing);
      } catch (error) {
        return this.#reject(req, res, error, next, timing);
      }
      if (!(decided instanceof Promise)) return this.#accept(req, res, decided, next, timing);
      const concluded = decided.then(
        (accepted) => this.#accept(req, res, accepted, next, timing),
        (error: unknown) => this.#reject(req, res, error, next, timing),
      );
      handleRejection(concluded, { req, res, next, logger: settings.logger });
    };
    return authenticate;
  }

  #accept(req: GateRequest, res: ServerResponse, { auth, nonce }: Accepted, next: Next, timing?: Timing): void {
    // RFC 9449 section 8: the client uses it in its next proof.
    if (nonce !== undefined && !res.headersSent) res.setHeader('DPoP-Nonce', nonce);
    watchGuards(res, this.#remember(req, auth, timing), next);
  }

  #remember(req: GateRequest, auth: Auth | undefined, timing: Timing | undefined): RequestState {
    const state = openState(req, this, auth);
    req.auth = auth;
    if (auth) this.recorder.advisor.isDone = true;
    if (timing || this.settings.onDecision) this.recorder.accepted(req, auth, timing);
    return state;
  }

  /** Responds to a request that could not be accepted, or hands the error to the app. */
  #reject(req: GateRequest, res: ServerResponse, error: unknown, next: Next, timing?: Timing): void {
    const refusal = error instanceof AuthError ? error : undefined;
    if (!refusal) this.#logUndecided(error);
    if (this.settings.refusals === 'respond') {
      return refusal ? this.refuse(req, res, refusal, next, undefined, timing) : sendInternalError(req, res);
    }
    // The app may go on: then what an earlier gate has accepted is not enough for a guard, and a 2xx needs one.
    const state = openState(req, this, undefined, refusal);
    state.allowed = false;
    watchGuards(res, state, () => {
      return refusal ? this.refuse(req, res, refusal, next, undefined, timing) : next(asObject(error));
    });
  }

  /**
   * The one place where a request is refused, by the gate or by a guard after it.
   *
   * @param auth - the caller that a guard refuses: its token was good
   */
  refuse(req: GateRequest, res: ServerResponse, error: AuthError, next: Next, auth?: Auth, timing?: Timing): void {
    this.recorder.refused(req, error, auth, timing);
    const isOfRoute = error.status === 401 && req.route && !this.#presentation.challengeScopes;
    const challengeScopes = isOfRoute ? scopesOfRoute(req) : undefined;
    const presented = challengeScopes ? { ...this.#presentation, challengeScopes } : this.#presentation;
    if (this.settings.refusals === 'next') return next(presentTo(req, error, presented));
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
      const { auth } = await this.decide(req, addressOf, timing);
      return this.#remember(req, auth, timing).auth;
    } catch (error) {
      const refusal = error instanceof AuthError ? error : undefined;
      openState(req, this, undefined, refusal);
      if (refusal) this.recorder.refused(req, refusal, undefined, timing);
      else this.#logUndecided(error);
      throw refusal ? presentTo(req, refusal, this.#presentation) : error;
    }
  }

  #logUndecided(error: unknown): void {
    this.settings.logger.error({ error: errorText(error) }, 'a request could not be decided');
  }

  hold(...call: Parameters<Held.HeldCallers['hold']>): () => void {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- loaded by the first call that needs it
    const { HeldCallers } = require('../verifier/held') as typeof Held;
    this.#held ??= new HeldCallers(this.#verifier, this.settings);
    if (this.#isClosed) this.#held.close();
    return this.#held.hold(...call);
  }

  onClose(task: () => void): void {
    if (this.#isClosed) task();
    else this.#closing.push(task);
  }

  close(): void {
    this.#isClosed = true;
    for (const task of this.#closing) task();
    this.recorder.close();
    this.#held?.close();
  }
}

function presentationOfGate(settings: GateSettings): Presentation {
  const { realm, exposeReasons, problemTypes, challengeScopes, resource } = settings;
  const { challenges, possession, possessionRequired } = settings;
  const [challenge] = challenges;
  return {
    realm,
    exposeReasons,
    problemTypes,
    challengeScopes,
    resourceMetadata: resource === undefined ? undefined : resourceMetadataUrl(resource),
    // Where every token needs a proof of its own scheme, none may come as a bearer token.
    dpop: challenge && {
      algorithms: challenge.algorithms.join(' '),
      used: possessionRequired && possession.length === 1,
    },
  };
}
