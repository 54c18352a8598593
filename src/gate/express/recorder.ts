import { callUnwaited } from '../core/callbacks';
import { decisionChannel } from '../core/activity-channels';
import type { Timer } from '../core/clock';
import type { AuthError } from '../core/errors';
import { consoleLogger, escapeUnsafe, silentLogger } from '../core/logger';
import type { Auth, Decision } from '../verifier/options';
import type { GateSettings } from '../verifier/read-options';
import type { GateVerifier } from '../verifier/verifier';
import { configurationAdvisor, type ConfigurationAdvisor } from './diagnosis/advisor';
import type * as Advice from './diagnosis/advice';
import type * as NoToken from './diagnosis/no-token';
import { headerOf } from '../token/bearer';
import type { Timing } from './decision';
import { declaredRoute, pathOf, requestIdOf, routeOf, type GateRequest } from './request-state';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- loaded with the first 403 for a scope that is logged
const advice = () => require('./diagnosis/advice') as typeof Advice;
// eslint-disable-next-line @typescript-eslint/no-require-imports -- loaded with the first request without a token that is logged
const noToken = () => require('./diagnosis/no-token') as typeof NoToken;

/** Records every decision of a gate and of its guards. */
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
    if (error.reason === 'superseded' && error.client) verifier.noteSuperseded(error.client);
    const isLogged = logger !== silentLogger;
    if (!isLogged && !onDecision && !decisionChannel.hasSubscribers) return;
    const { reason, status } = error;
    const facts = factsOf(req, auth ?? error.client);
    if (isLogged) log(req, error, facts, auth);
    observe(req, { outcome: 'refused', reason, status, error, ...(auth && { auth }) }, facts, timing);
    advisor.note(req, error);
  }

  function log(req: GateRequest, { reason, status, privateDetail }: AuthError, facts: Facts, auth?: Auth): void {
    if (reason === 'missing_token' && !hasWarned && isPreflight(req)) {
      hasWarned = true;
      logger.warn({ route: routeOf(req) }, PREFLIGHT_REFUSED);
    }
    const hint = auth && reason === 'insufficient_scope' ? advice().scopeHint(auth, verifier.settings.issuers) : '';
    const detail =
      reason === 'missing_token' ? noToken().withoutToken(req) : hint ? `${privateDetail ?? ''}${hint}` : privateDetail;
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
    callUnwaited(
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

/** What is logged of one refusal. */
interface LoggedRefusal {
  readonly reason: string;
  readonly status: number;
  readonly issuer?: string | undefined;
  /** Only where a signature or the issuer vouches for it. */
  readonly clientId?: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly requestId?: string | undefined;
  readonly detail?: string | undefined;
  /** Of a trial: the status of the response, what would settle the difference, and how many requests a line stands for. */
  readonly responded?: number;
  readonly advice?: string;
  readonly count?: number;
}

/** Counts refusals: the first one of a key is logged immediately, and once a minute how many more came. */
export interface RefusalCounter {
  readonly add: (key: string, refusal: LoggedRefusal) => void;
  /** Writes the counts that are pending. */
  readonly close: () => void;
}

const PERIOD_MS = 60_000;
const MAX_TEXT = 512;

/**
 * Makes a counter of refusals.
 *
 * @param what - what has become of the requests: `refused`
 * @param maxKeys - keys that are counted one by one; further ones are counted by their reason
 */
export function refusalCounter(
  { logger, schedule }: Pick<GateSettings, 'logger' | 'schedule'>,
  what: string,
  maxKeys: number,
): RefusalCounter {
  const counts = new Map<string, { count: number; last: LoggedRefusal }>();
  let timer: Timer | undefined;
  let closed = false;

  function add(key: string, refusal: LoggedRefusal): void {
    const isCounted = counts.has(key) || counts.size < maxKeys;
    const last = isCounted ? refusal : { ...refusal, issuer: undefined, clientId: undefined };
    const known = counts.get(isCounted ? key : refusal.reason);
    counts.set(isCounted ? key : refusal.reason, { count: known ? known.count + 1 : 0, last });
    if (known) return;
    logger.warn(printable(last), `request ${what}`);
    if (!closed) timer ??= schedule(endPeriod, PERIOD_MS);
  }

  function endPeriod(): void {
    timer = undefined;
    for (const [key, { count, last }] of counts) {
      if (count === 0) counts.delete(key);
      else counts.set(key, { count: 0, last });
      write(count, last);
    }
    if (counts.size > 0) timer = schedule(endPeriod, PERIOD_MS);
  }

  function write(count: number, last: LoggedRefusal): void {
    if (count === 0) return;
    const requests = count === 1 ? '1 more request' : `${count} more requests`;
    logger.warn(printable(last.count === undefined ? last : { ...last, count }), `${requests} ${what}: ${last.reason}`);
  }

  return {
    add,
    close() {
      closed = true;
      timer?.cancel();
      for (const { count, last } of counts.values()) write(count, last);
      counts.clear();
    },
  };
}

/** Path, request id and detail can be text of the caller: one line of bounded length. */
function printable(refusal: LoggedRefusal): object {
  const fields = Object.entries(refusal).map(([name, value]: [string, unknown]) => {
    return [name, typeof value === 'string' ? escapeUnsafe(value.slice(0, MAX_TEXT)) : value];
  });
  return Object.fromEntries(fields) as object;
}
