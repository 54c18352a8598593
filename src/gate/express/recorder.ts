import { notify } from '../core/callbacks';
import { decisionChannel } from '../core/channels';
import type { Decision } from '../gate/options';
import type { GateSettings } from '../gate/read-options';
import { headerOf } from '../token/bearer';
import { refusalLog } from './refusal-log';
import { declaredRoute, pathOf, requestIdOf, routeOf } from './request-state';
import type { GateRequest } from './request-state';

/** How long a decision took. `cache`: whether the token was verified before; `none`: there was none to verify. */
export interface Timing {
  readonly startedMs: number;
  cache: 'hit' | 'miss' | 'none';
}

/** Starts to measure one request; `undefined` without a collector. */
export function startTiming(): Timing | undefined {
  return decisionChannel.hasSubscribers ? { startedMs: performance.now(), cache: 'none' } : undefined;
}

/** What was decided, without the facts of the request, which cost as much as the rest and are often not needed. */
type Verdict = Pick<Decision, 'outcome' | 'reason' | 'status' | 'error' | 'auth'>;

/**
 * Takes every decision of a gate and of its guards: the log, `onDecision` and the channel are given one record, so that they
 * cannot disagree.
 */
export function decisionRecorder({ onDecision, ...settings }: GateSettings): {
  readonly decided: (req: GateRequest, verdict: Verdict, timing?: Timing) => void;
  readonly close: () => void;
} {
  const { logger } = settings;
  const log = refusalLog(settings);
  let hasWarned = false;

  function decided(req: GateRequest, verdict: Verdict, timing?: Timing): void {
    const { reason, status, error, auth } = verdict;
    const isLogged = reason !== undefined && status !== undefined;
    const isPublished = decisionChannel.hasSubscribers;
    if (!onDecision && !isLogged && !isPublished) return;
    const facts = factsOf(req);
    const { issuer, clientId } = auth ?? error?.client ?? {};
    if (isLogged) {
      if (reason === 'missing_token' && isPreflight(req)) warnOfPreflight(req);
      const detail = error?.privateDetail;
      log.refused({ reason, status, issuer, clientId, ...facts, detail });
    }
    if (!onDecision && !isPublished) return;
    const route = declaredRoute(req);
    const decision = withRequest(
      {
        ...verdict,
        ...(issuer !== undefined && { issuer }),
        ...(clientId !== undefined && { clientId }),
        ...facts,
        ...(route !== undefined && { route }),
        ...(timing && { durationMs: performance.now() - timing.startedMs, cache: timing.cache }),
      },
      req,
    );
    if (isPublished) decisionChannel.publish(decision);
    if (onDecision) report(req, decision);
  }

  function warnOfPreflight(req: GateRequest): void {
    if (hasWarned) return;
    hasWarned = true;
    logger.warn({ route: routeOf(req) }, PREFLIGHT_REFUSED);
  }

  /** An observer decides nothing: whether it throws or rejects, the response stays the same. */
  function report(req: GateRequest, decision: Decision): void {
    notify(
      () => onDecision?.(decision, req),
      (error) => logger.error({ error: error instanceof Error ? error.message : 'not an Error' }, 'onDecision failed'),
    );
  }

  return {
    decided,
    close: () => log.close(),
  };
}

const PREFLIGHT_REFUSED =
  'a CORS preflight was refused, because browsers send it without a token: mount cors() before authenticate()';

/** Whether a browser asks by this request whether it may send another one (Fetch standard, section 3.2.2). */
function isPreflight(req: GateRequest): boolean {
  if (req.method !== 'OPTIONS') return false;
  return headerOf(req, 'origin') !== undefined && headerOf(req, 'access-control-request-method') !== undefined;
}

/** The request is not enumerable: its headers have the token, and a decision is made to be logged. */
function withRequest(decision: Omit<Decision, 'request'>, req: GateRequest): Decision {
  return Object.defineProperty(decision, 'request', { value: req }) as Decision;
}

function factsOf(req: GateRequest): Pick<Decision, 'method' | 'path' | 'requestId'> {
  const requestId = requestIdOf(req);
  return { method: req.method ?? '', path: pathOf(req), ...(requestId !== undefined && { requestId }) };
}
