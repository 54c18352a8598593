import type { ServerResponse } from 'node:http';
import type { Schedule, Timer } from '../core/clock';
import type { AuthError } from '../core/errors';
import type { Logger } from '../core/logger';
import { REASON_ADVICE } from '../core/reason-advice';
import type { RefusedClient } from '../gate/explain';
import type { Auth } from '../gate/options';
import { refusalLog } from './refusal-log';
import { routeOf, stateOf } from './request-state';
import type { GateRequest } from './request-state';
import { scopesOfRoute } from './scope-guard';

/** Reports where a gate that enforces nothing decides otherwise than what responds. */
export interface ReportMode {
  /** To be called for every request, with what would refuse it now, and whom; the comparison is made when the response is there. */
  watch(req: GateRequest, res: ServerResponse, refusal?: AuthError, client?: RefusedClient): void;
  close(): void;
}

const WARNING =
  'enforce is "report": this gate refuses nothing and protects nothing, it only says what it would refuse';

/** How often the unused scopes of clients are logged, and of how many clients. */
const UNUSED_EVERY_MS = 600_000;
const MAX_CLIENTS = 1_000;

/** Collects which scopes clients hold and which of them a guard of a route that responded has required. */
function scopeUse({ logger, schedule }: { readonly logger: Logger; readonly schedule: Schedule }) {
  const clients = new Map<string, { readonly held: Set<string>; readonly used: Set<string>; logged: string }>();
  let timer: Timer | undefined;
  let isClosed = false;

  function log(): void {
    timer = undefined;
    for (const [clientId, client] of clients) {
      const unused = [...client.held].filter((scope) => !client.used.has(scope));
      const text = unused.join(' ');
      if (text === client.logged) continue;
      client.logged = text;
      logger.info({ clientId, unused }, 'scopes that a client holds, and no request has needed so far');
    }
  }

  return {
    add({ clientId, scopes }: Auth, required: readonly string[]): void {
      if (!clients.has(clientId) && clients.size >= MAX_CLIENTS) return;
      const client = clients.get(clientId) ?? { held: new Set(), used: new Set(), logged: '' };
      clients.set(clientId, client);
      for (const scope of scopes) client.held.add(scope);
      for (const scope of required) client.used.add(scope);
      if (!isClosed) timer ??= schedule(log, UNUSED_EVERY_MS);
    },
    close(): void {
      isClosed = true;
      timer?.cancel();
      log();
    },
  };
}

/** Opens the reports of one gate, and says loudly that it protects nothing. */
export function reportMode({ logger, schedule }: { readonly logger: Logger; readonly schedule: Schedule }): ReportMode {
  const log = refusalLog({ logger, schedule }, { isReport: true });
  const use = scopeUse({ logger, schedule });
  const refusals = new WeakMap<
    GateRequest,
    { readonly refusal?: AuthError | undefined; readonly client?: RefusedClient | undefined }
  >();
  logger.warn({}, WARNING);

  function compare(req: GateRequest, res: ServerResponse): void {
    const { refusal, client = {} } = refusals.get(req) ?? {};
    const auth: Auth | undefined = stateOf(req)?.auth;
    const { issuer, clientId } = auth ?? client;
    const isRefused = res.statusCode === 401 || res.statusCode === 403;
    if (auth && res.statusCode < 400) use.add(auth, scopesOfRoute(req) ?? []);
    // A 403 may be about something that no token says.
    const isDifferent = refusal ? !isRefused : res.statusCode === 401;
    if (!isDifferent) return;
    log.refused({
      reason: refusal?.reason ?? 'accepted',
      status: refusal?.status ?? 200,
      responded: res.statusCode,
      issuer,
      clientId,
      method: req.method ?? '',
      // The pattern of the route, so that there are only as many reports as routes.
      path: routeOf(req),
      detail: refusal?.privateDetail,
      advice: refusal ? REASON_ADVICE[refusal.reason].operator : 'The gate would accept what is refused today.',
    });
  }

  return {
    watch(req, res, refusal, client) {
      const known = refusals.get(req);
      // The first refusal is the one that the caller would have got.
      if (!known?.refusal) refusals.set(req, { refusal, client });
      if (!known) res.once('finish', () => compare(req, res));
    },
    close() {
      log.close();
      use.close();
    },
  };
}
