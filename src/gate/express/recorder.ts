import { notify } from '../core/callbacks';
import { decisionChannel } from '../core/channels';
import type { AuthError } from '../core/errors';
import { consoleLogger, silentLogger } from '../core/logger';
import { REASONS } from '../core/reasons';
import type { Auth, Decision } from '../gate/options';
import type { GateVerifier } from '../gate/verifier';
import { configurationAdvice } from '../token/advice';
import { bearerToken, headerOf } from '../token/bearer';
import type { Timing } from './decision';
import { printable, refusalCounter } from './refusal-log';
import { declaredRoute, pathOf, requestIdOf, routeOf } from './request-state';
import type { GateRequest } from './request-state';

/** Takes every decision of a gate and of its guards. */
export interface DecisionRecorder {
  readonly accepted: (req: GateRequest, auth: Auth | undefined, timing: Timing | undefined) => void;
  /** @param auth - the caller that a guard refuses: its token was good */
  readonly refused: (req: GateRequest, error: AuthError, auth?: Auth, timing?: Timing) => void;
  readonly advisor: ConfigurationAdvisor;
  readonly close: () => void;
}

/** Pairs of reason and client whose refusals the console counts one by one. */
const MAX_COUNTS = 100;

/** The log, `onDecision` and the channel are given the same facts, so that they cannot disagree. */
export function decisionRecorder(verifier: GateVerifier): DecisionRecorder {
  const { onDecision, logger } = verifier.settings;
  // A logger of the app gets a line for each refusal.
  const counter = logger === consoleLogger ? refusalCounter(verifier.settings, 'refused', MAX_COUNTS) : undefined;
  const advisor = configurationAdvisor(verifier);
  let hasWarned = false;

  function accepted(req: GateRequest, auth: Auth | undefined, timing: Timing | undefined): void {
    observe(req, auth ? { outcome: 'authenticated', auth } : { outcome: 'anonymous' }, factsOf(req, auth), timing);
  }

  function refused(req: GateRequest, error: AuthError, auth?: Auth, timing?: Timing): void {
    const isLogged = logger !== silentLogger;
    if (!isLogged && !onDecision && !decisionChannel.hasSubscribers) return;
    const { reason, status } = error;
    const facts = factsOf(req, auth ?? error.client);
    if (isLogged) log(req, error, facts);
    observe(req, { outcome: 'refused', reason, status, error, ...(auth && { auth }) }, facts, timing);
    advisor.note(req, error);
  }

  function log(req: GateRequest, { reason, status, privateDetail: detail }: AuthError, facts: Facts): void {
    if (reason === 'missing_token' && !hasWarned && isPreflight(req)) {
      hasWarned = true;
      logger.warn({ route: routeOf(req) }, PREFLIGHT_REFUSED);
    }
    const refusal = { reason, status, ...facts, detail };
    if (counter) counter.add(`${reason} ${facts.issuer} ${facts.clientId}`, refusal);
    else logger.info(printable(refusal), 'request refused');
  }

  function observe(req: GateRequest, verdict: Partial<Decision>, facts: Facts, timing: Timing | undefined): void {
    const isPublished = decisionChannel.hasSubscribers;
    if (!onDecision && !isPublished) return;
    const route = declaredRoute(req);
    const decision = {
      ...verdict,
      ...facts,
      ...(route !== undefined && { route }),
      ...(timing && { durationMs: performance.now() - timing.startedMs, cache: timing.cache }),
    } as Decision;
    // Not enumerable: its headers have the token, and a decision is made to be logged.
    Object.defineProperty(decision, 'request', { value: req });
    if (isPublished) decisionChannel.publish(decision);
    // An observer decides nothing: whether it throws or rejects, the response stays the same.
    notify(
      () => onDecision?.(decision, req),
      (error) => logger.error({ error: error instanceof Error ? error.message : 'not an Error' }, 'onDecision failed'),
    );
  }

  return { accepted, refused, advisor, close: () => counter?.close() };
}

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

/** Logs once what to change if the first tokens are refused for reasons that a wrong configuration causes. */
interface ConfigurationAdvisor {
  /** Whether a token was accepted, or the advice was given. With several issuers a token does not show which one is meant. */
  isDone: boolean;
  /** Takes a refusal into account. Never throws. */
  readonly note: (req: GateRequest, error: AuthError) => void;
}

function configurationAdvisor(verifier: GateVerifier): ConfigurationAdvisor {
  const { issuers, challenges, logger } = verifier.settings;
  const [issuer] = issuers;
  const advisor = {
    isDone: issuers.length > 1 || logger === silentLogger,
    note(req: GateRequest, { reason }: AuthError): void {
      if (!advisor.isDone && REASONS[reason].configuration) advise(req, reason).catch(() => undefined);
    },
  };

  async function advise(req: GateRequest, reason: AuthError['reason']): Promise<void> {
    const raw = bearerToken(req, challenges.length > 0);
    const advice = issuer && configurationAdvice(reason, raw, issuer);
    // It quotes the token, so its signature has to be good: a made-up one must not suggest anything.
    if (!advice || !(await verifier.isSigned(raw)) || advisor.isDone) return;
    advisor.isDone = true;
    const message = 'no token has been accepted so far: check the configuration';
    logger.warn({ issuer: issuer.issuer, reason, ...advice }, message);
  }

  return advisor;
}
