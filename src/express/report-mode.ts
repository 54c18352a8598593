import type { ServerResponse } from 'node:http';
import type { Schedule } from '../core/clock';
import type { AuthError } from '../core/errors';
import type { Logger } from '../core/logger';
import { REASON_ADVICE } from '../core/reason-advice';
import type { Auth } from '../gate/options';
import { refusalLog } from './refusal-log';
import { routeOf, stateOf } from './request-state';
import type { GateRequest } from './request-state';

/** Reports where a gate that enforces nothing decides otherwise than what responds. */
export interface ReportMode {
  /** To be called for every request, with what would refuse it now; the comparison is made when the response is there. */
  watch(req: GateRequest, res: ServerResponse, refusal: AuthError | undefined): void;
  close(): void;
}

const WARNING =
  'enforce is "report": this gate refuses nothing and protects nothing, it only says what it would refuse';

/** Opens the reports of one gate, and says loudly that it protects nothing. */
export function reportMode({ logger, schedule }: { readonly logger: Logger; readonly schedule: Schedule }): ReportMode {
  const log = refusalLog({ logger, schedule }, { isReport: true });
  const refusals = new WeakMap<GateRequest, AuthError | null>();
  logger.warn({}, WARNING);

  function compare(req: GateRequest, res: ServerResponse): void {
    const refusal = refusals.get(req) ?? undefined;
    const auth: Auth | undefined = stateOf(req)?.auth;
    const isRefused = res.statusCode === 401 || res.statusCode === 403;
    // A 403 may be about something that no token says.
    const isDifferent = refusal ? !isRefused : res.statusCode === 401;
    if (!isDifferent) return;
    log.refused({
      reason: refusal?.reason ?? 'accepted',
      status: refusal?.status ?? 200,
      responded: res.statusCode,
      issuer: auth?.issuer,
      clientId: auth?.clientId,
      method: req.method ?? '',
      // The pattern of the route, so that there are only as many reports as routes.
      path: routeOf(req),
      detail: refusal?.privateDetail,
      advice: refusal ? REASON_ADVICE[refusal.reason].operator : 'The gate would accept what is refused today.',
    });
  }

  return {
    watch(req, res, refusal) {
      const isKnown = refusals.has(req);
      // The first refusal is the one that the caller would have got.
      refusals.set(req, refusals.get(req) ?? refusal ?? null);
      if (!isKnown) res.once('finish', () => compare(req, res));
    },
    close: () => log.close(),
  };
}
