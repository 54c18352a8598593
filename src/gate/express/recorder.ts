import { callUnwaited } from '../core/callbacks';
import { decisionChannel } from '../core/activity-channels';
import type { AuthError } from '../core/errors';
import { consoleLogger, silentLogger } from '../core/logger';
import type { Auth, Decision } from '../verifier/options';
import type { GateSettings } from '../verifier/read-options';
import type { GateVerifier } from '../verifier/gate-verifier';
import { ConfigurationAdvisor } from './diagnosis/advisor';
import type * as Advice from './diagnosis/advice';
import type * as NoToken from './diagnosis/no-token';
import { headerOf } from '../token/bearer';
import type { Timing } from './decision';
import { RefusalCounter } from './refusal-counter';
import { printable } from './refusal-log';
import { declaredRoute, pathOf, requestIdOf, routeOf, type GateRequest } from './request-state';

/** Pairs of reason and client whose refusals the console counts one by one. */
const MAX_COUNTS = 100;

/**
 * Records every decision of a gate and of its guards. The log, `onDecision` and the channel are given the same facts, so that they
 * cannot disagree.
 */
export class DecisionRecorder {
  readonly advisor: ConfigurationAdvisor;
  readonly #verifier: GateVerifier;
  /** A logger of the app gets a line for each refusal. */
  readonly #counter: RefusalCounter | undefined;
  #hasWarned = false;

  constructor(verifier: GateVerifier) {
    const { settings } = verifier;
    this.advisor = new ConfigurationAdvisor(verifier);
    this.#verifier = verifier;
    if (settings.logger === consoleLogger) this.#counter = new RefusalCounter(settings, 'refused', MAX_COUNTS);
  }

  accepted(req: GateRequest, auth: Auth | undefined, timing: Timing | undefined): void {
    const outcome = auth ? 'authenticated' : 'anonymous';
    this.#observe(req, { outcome, ...(auth && { auth }) }, factsOf(req, auth), timing);
  }

  /** @param auth - the caller that a guard refuses: its token was good */
  refused(req: GateRequest, error: AuthError, auth?: Auth, timing?: Timing): void {
    const { reason, status } = error;
    if (reason === 'superseded' && error.client) this.#verifier.noteSuperseded(error.client);
    const { logger, onDecision } = this.#verifier.settings;
    const isLogged = logger !== silentLogger;
    if (!isLogged && !onDecision && !decisionChannel.hasSubscribers) return;
    const facts = factsOf(req, auth ?? error.client);
    if (isLogged) this.#log(req, error, facts, auth);
    this.#observe(req, { outcome: 'refused', reason, status, error, ...(auth && { auth }) }, facts, timing);
    this.advisor.note(req, error);
  }

  #log(req: GateRequest, error: AuthError, facts: Facts, auth?: Auth): void {
    const { reason, status } = error;
    const { logger } = this.#verifier.settings;
    if (reason === 'missing_token' && !this.#hasWarned && isPreflight(req)) {
      this.#hasWarned = true;
      logger.warn({ route: routeOf(req) }, PREFLIGHT_REFUSED);
    }
    const refusal = { reason, status, ...facts, detail: detailOf(req, error, auth, this.#verifier.settings) };
    if (this.#counter) this.#counter.add(`${reason} ${facts.issuer} ${facts.clientId}`, refusal);
    else logger.info(printable(refusal), 'request refused');
  }

  #observe(req: GateRequest, outcome: Partial<Decision>, facts: Facts, timing: Timing | undefined): void {
    const { logger, onDecision } = this.#verifier.settings;
    const isPublished = decisionChannel.hasSubscribers;
    if (!onDecision && !isPublished) return;
    const route = declaredRoute(req);
    const decision = {
      ...outcome,
      ...facts,
      ...(route !== undefined && { route }),
      ...(timing && { durationMs: performance.now() - timing.startedMs, cache: timing.cache }),
    } as Decision;
    // Not enumerable: its headers have the token, and a decision is made to be logged.
    Object.defineProperty(decision, 'request', { value: req });
    if (isPublished) decisionChannel.publish(decision);
    // An observer decides nothing: whether it throws or rejects, the response stays the same.
    callUnwaited(
      () => onDecision?.(decision, req),
      (error) => logger.error({ error: error instanceof Error ? error.message : 'not an Error' }, 'onDecision failed'),
    );
  }

  close(): void {
    this.#counter?.close();
  }
}

/** What the log says about a refusal beyond its reason. */
function detailOf(req: GateRequest, error: AuthError, auth: Auth | undefined, { issuers }: GateSettings) {
  const { reason, privateDetail } = error;
  /* eslint-disable @typescript-eslint/no-require-imports -- each is loaded with the first refusal that needs it */
  if (reason === 'not_yet_valid') return privateDetail?.replace(/ s ahead$/, ` s ahead: ${CLOCKS_DIFFER}`);
  if (reason === 'missing_token') return (require('./diagnosis/no-token') as typeof NoToken).withoutToken(req);
  if (reason !== 'insufficient_scope' || !auth) return privateDetail;
  return (privateDetail ?? '') + (require('./diagnosis/advice') as typeof Advice).scopeHint(auth, issuers);
  /* eslint-enable @typescript-eslint/no-require-imports */
}

/** `tillgate check` measures the difference. */
const CLOCKS_DIFFER = 'probably the clock of this machine or that of the issuer is wrong, check NTP on both';
const PREFLIGHT_REFUSED =
  'a CORS preflight was refused, because browsers send it without a token: mount cors() before authenticate()';

/** Whether a browser asks by this request whether it may send another one (Fetch standard, section 3.2.2). */
function isPreflight(req: GateRequest): boolean {
  if (req.method !== 'OPTIONS') return false;
  return headerOf(req, 'origin') !== undefined && headerOf(req, 'access-control-request-method') !== undefined;
}

type Facts = Pick<Decision, 'issuer' | 'clientId' | 'method' | 'path' | 'requestId'>;

/** What is known of a request and its client: nothing that is `undefined`. */
function factsOf(req: GateRequest, { issuer, clientId }: Partial<NonNullable<AuthError['client']>> = {}): Facts {
  const requestId = requestIdOf(req);
  return {
    ...(issuer !== undefined && { issuer }),
    ...(clientId !== undefined && { clientId }),
    method: req.method ?? '',
    path: pathOf(req),
    ...(requestId !== undefined && { requestId }),
  };
}
