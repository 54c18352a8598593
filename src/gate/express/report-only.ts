import type { ServerResponse } from 'node:http';
import { callUnwaited } from '../core/callbacks';
import { withTimeLimit, type Timer } from '../core/clock';
import { AuthError } from '../core/errors';
import { consoleLogger, errorText } from '../core/logger';
import { refuseUncalled } from '../core/options';
import { describe } from '../core/words';
import { REASONS } from '../core/reasons';
import { RouteLabels } from '../core/route-labels';
import type { Auth } from '../verifier/options';
import type { Accepted } from './decision';
import { triableGates, type GateEnforcer } from './enforcer';
import { guardChecks, requirementOf, scopesIn, TRIAL, type GuardCheck } from './guard';
import { RefusalCounter } from './refusal-counter';
import { addressOf, declaredRoute, routeLabelOf, routeOf, stateOf } from './request-state';
import type { Enforcer, GateRequest, Middleware, Next, RequestState } from './request-state';
import { handleRejection } from './respond';

/** Triples of client, reason and route that are counted one by one. */
const MAX_DIFFERENCES = 5_000;
/** How often the unused scopes of clients are logged, and of how many clients. */
const UNUSED_EVERY_MS = 600_000;
const MAX_COUNTED_CLIENTS = 1_000;

/** What the trials of a gate, and of guards after it, log. */
class TrialLog {
  /** Where they decide otherwise than what responds. */
  readonly differences: RefusalCounter;
  readonly routes = new RouteLabels();
  readonly #settings: Enforcer['settings'];
  /** Which scopes clients hold, and which of them a guard on trial has required of a request that was served. */
  readonly #clients = new Map<string, { readonly held: Set<string>; readonly used: Set<string>; logged: string }>();
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(enforcer: Enforcer) {
    this.differences = new RefusalCounter(enforcer.settings, 'differently decided', MAX_DIFFERENCES);
    this.#settings = enforcer.settings;
    enforcer.onClose(() => this.#close());
  }

  addUse({ clientId, scopes }: Auth, required: readonly string[]): void {
    if (!this.#clients.has(clientId) && this.#clients.size >= MAX_COUNTED_CLIENTS) return;
    const client = this.#clients.get(clientId) ?? { held: new Set(), used: new Set(), logged: '' };
    this.#clients.set(clientId, client);
    for (const scope of scopes) client.held.add(scope);
    for (const scope of required) client.used.add(scope);
    if (!this.#isClosed) this.#timer ??= this.#settings.schedule(() => this.#logUnused(), UNUSED_EVERY_MS);
  }

  #logUnused(): void {
    this.#timer = undefined;
    for (const [clientId, client] of this.#clients) {
      const unused = [...client.held].filter((scope) => !client.used.has(scope));
      const text = unused.join(' ');
      if (text === client.logged) continue;
      client.logged = text;
      this.#settings.logger.info({ clientId, unused }, 'scopes that a client holds, and no request has needed so far');
    }
  }

  #close(): void {
    this.#isClosed = true;
    this.differences.close();
    this.#timer?.cancel();
    this.#logUnused();
  }
}

const logs = new WeakMap<Enforcer, TrialLog>();

function logOf(enforcer: Enforcer): TrialLog {
  const log = logs.get(enforcer) ?? new TrialLog(enforcer);
  logs.set(enforcer, log);
  return log;
}

/** What one gate on trial, or the guards on trial after a gate that decides, make of a request. */
class Trial {
  /** That of the gate on trial, or of the gate before the guards. */
  readonly enforcer: Enforcer;
  /** What the last gate that decides had accepted when the trial began: a later one is nearer to the guards after it. */
  readonly state: RequestState | undefined;
  auth: Auth | undefined;
  refusal: AuthError | undefined;
  /** Present while the gate has not decided yet. */
  deciding: Promise<void> | undefined;
  /** Scopes that the guards on trial require. */
  readonly scopes: string[] = [];
  /** What has to end before the trial can be compared with the response. */
  readonly work: Promise<void>[] = [];
  #hasFailed = false;

  constructor(enforcer: Enforcer, state: RequestState | undefined) {
    this.enforcer = enforcer;
    this.state = state;
  }

  /** Does what a trial does, and keeps its open work in `work`: no error of it reaches the request. */
  run(work: () => void | Promise<void>): void {
    try {
      const result = work()?.catch((error: unknown) => this.#fail(error));
      if (result) this.work.push(result);
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#hasFailed = true;
    this.enforcer.settings.logger.error({ error: errorText(error) }, 'a trial could not be decided');
  }

  /** Asks a guard, which adds nothing where the gate, or a guard before it, would have refused. */
  ask(check: GuardCheck, req: GateRequest): void | Promise<void> {
    if (this.refusal || this.#hasFailed) return;
    const refuse = (refusal: Error | undefined): void => {
      if (refusal && !(refusal instanceof AuthError)) throw refusal;
      this.refusal ??= refusal;
    };
    const refusal = this.auth ? check(this.auth, req, this.enforcer) : new AuthError('missing_token');
    return refusal instanceof Promise ? refusal.then(refuse) : refuse(refusal);
  }

  /** Compares what it would have decided with the response, once that has ended. */
  conclude(req: GateRequest, res: ServerResponse): void {
    callUnwaited(
      () => Promise.all(this.work).then(() => this.#compare(req, res.statusCode)),
      (error) => this.#fail(error),
    );
  }

  #compare(req: GateRequest, responded: number): void {
    const { auth, refusal, scopes } = this;
    const log = logOf(this.enforcer);
    if (auth && scopes.length > 0 && responded < 400) log.addUse(auth, scopes);
    const { issuer, clientId } = auth ?? refusal?.client ?? {};
    const { reason = 'accepted', status = 200, privateDetail: detail } = refusal ?? {};
    // A 403 may be about something that no token says; without a token, a 404 grants nothing either.
    const isRefused = [401, 403].includes(responded) || (responded === 404 && reason === 'missing_token');
    const isDifferent = refusal ? !isRefused : responded === 401;
    if (this.#hasFailed || !isDifferent) return;
    const advice = refusal ? REASONS[refusal.reason].operator : 'The gate would accept what is refused today.';
    // Not the path of the request, so that there are only as many lines as routes.
    const path = declaredRoute(req) !== undefined ? routeLabelOf(req, log.routes) : 'unmatched';
    const facts = { reason, status, responded, issuer, clientId, method: req.method ?? '', path, detail };
    log.differences.add(`${reason} ${issuer} ${clientId} ${path}`, { ...facts, advice, count: 1 });
  }
}

/** The trials of a request in their order. What guards read is elsewhere: no trial changes it. */
const trialsOf = new WeakMap<GateRequest, Trial[]>();

/** `reportOnly()`. */
export function reportOnlyMiddleware(args: readonly unknown[]): Middleware {
  refuseUncalled('reportOnly(gate)', args);
  const [given] = args;
  const gate = triableGates.get(given as object);
  const check = guardChecks.get(given as object);
  if (!gate && !check) {
    const expected = 'what authenticate() returned, or a guard such as requireScope()';
    throw new TypeError(`reportOnly(): expected ${expected}, got ${describe(given)}`);
  }
  const trial = Object.defineProperty(gate ? gateOnTrial(gate) : guardOnTrial(given as Middleware, check!), 'name', {
    value: 'reportOnly',
  });
  const { close } = given as { readonly close?: () => unknown };
  return Object.assign(trial as Middleware, { [TRIAL]: true, ...(close && { close }) });
}

type TrialMiddleware = (req: GateRequest, res: ServerResponse, next: Next) => void;

/** How long a request waits for a trial, which may have to ask the issuer: what is decided later is still compared. */
const MAX_TRIAL_WAIT_MS = 100;

function gateOnTrial(gate: GateEnforcer): TrialMiddleware {
  const { logger, schedule } = gate.settings;
  const { advisor } = gate.recorder;
  logger.warn({}, 'a gate is on trial by reportOnly(): there it refuses nothing and protects nothing');

  return (req, res, next) => {
    const trial = begin(req, res, gate);
    const accept = ({ auth }: Accepted): void => {
      trial.auth = auth;
      if (auth) advisor.isDone = true;
    };
    const refuse = (error: unknown): void => {
      if (!(error instanceof AuthError)) throw error;
      trial.refusal = error;
      advisor.note(req, error);
    };
    trial.run(() => {
      try {
        const decided = gate.decide(req, addressOf, undefined, true);
        return decided instanceof Promise ? decided.then(accept, refuse) : accept(decided);
      } catch (error) {
        return refuse(error);
      }
    });
    const [deciding] = trial.work;
    if (!deciding) return next();
    trial.deciding = deciding.then(() => void (trial.deciding = undefined));
    const waited = withTimeLimit(deciding, MAX_TRIAL_WAIT_MS, schedule, () => TOO_LATE).catch(() => undefined);
    const continued = waited.then(() => next());
    handleRejection(continued, { req, res, next, logger });
  };
}

const TOO_LATE = new Error('the trial has not decided in time');

function guardOnTrial(guard: Middleware, check: GuardCheck): TrialMiddleware {
  const { name } = guard;
  const scopes = scopesIn(requirementOf(guard));
  let hasWarned = false;

  return (req, res, next) => {
    const trial = nearestTrial(req, res);
    if (!trial) {
      const message = `reportOnly(${name}()) has no gate: mount authenticate(), or reportOnly(authenticate()), before it`;
      if (!hasWarned) consoleLogger.warn({ route: routeOf(req) }, message);
      hasWarned = true;
      return next();
    }
    trial.scopes.push(...scopes);
    const { deciding } = trial;
    const ask = (): void | Promise<void> => trial.ask(check, req);
    trial.run(deciding ? () => deciding.then(ask) : ask);
    next();
  };
}

/** What a guard on trial asks: the nearest gate before it. */
function nearestTrial(req: GateRequest, res: ServerResponse): Trial | undefined {
  const state = stateOf(req);
  const last = trialsOf.get(req)?.at(-1);
  if (last && last.state === state) return last;
  return state && Object.assign(begin(req, res, state.enforcer), { auth: state.auth, refusal: state.refusal });
}

function begin(req: GateRequest, res: ServerResponse, enforcer: Enforcer): Trial {
  const trial = new Trial(enforcer, stateOf(req));
  const trials = trialsOf.get(req) ?? [];
  if (trials.push(trial) > 1) return trial;
  trialsOf.set(req, trials);
  res.once('finish', () => trials.forEach((one) => one.conclude(req, res)));
  return trial;
}
