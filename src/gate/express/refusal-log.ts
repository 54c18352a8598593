import type { Schedule, Timer } from '../core/clock';
import type { AuthError } from '../core/errors';
import { consoleLogger, escapeUnsafe } from '../core/logger';
import type { Logger } from '../core/logger';
import { REASONS } from '../core/reasons';
import type { Auth } from '../gate/options';

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
  /** In a report: the status of the response, and what would settle the difference. */
  readonly responded?: number;
  readonly advice?: string;
}

const PERIOD_MS = 60_000;
/** Pairs of reason and client that are counted one by one; refusals of further clients are counted by their reason. */
const MAX_COUNTS = 100;
/** The same for reports, which have a row for each route too. */
const MAX_REPORTED = 5_000;
const MAX_TEXT = 512;

/**
 * Logs refusals. A logger of the app gets a line for each. The console gets the first one of a reason and client
 * immediately, and a count of the others once a minute; in a report every logger does, by route too.
 */
export function refusalLog(
  { logger, schedule }: { readonly logger: Logger; readonly schedule: Schedule },
  { isReport = false } = {},
): {
  readonly refused: (refusal: LoggedRefusal) => void;
  /** Writes the counts that are pending. */
  readonly close: () => void;
} {
  const counts = new Map<string, { count: number; last: LoggedRefusal; timer: Timer | undefined }>();
  let closed = false;
  const what = isReport ? 'differently decided' : 'refused';

  function refused(refusal: LoggedRefusal): void {
    if (logger !== consoleLogger && !isReport) return logger.info(printable(refusal), 'request refused');
    const { reason, issuer, clientId, method, path } = refusal;
    const ofClient = `${reason} ${issuer} ${clientId}${isReport ? ` ${method} ${path}` : ''}`;
    const isCounted = counts.has(ofClient) || counts.size < (isReport ? MAX_REPORTED : MAX_COUNTS);
    const [key, last] = isCounted
      ? [ofClient, refusal]
      : [reason, { ...refusal, issuer: undefined, clientId: undefined, ...(isReport && { path: 'further routes' }) }];
    const counted = counts.get(key);
    if (counted) {
      counted.count++;
      counted.last = last;
      return;
    }
    logger.warn(printable(isReport ? { ...last, count: 1 } : last), `request ${what}`);
    counts.set(key, { count: 0, last, timer: closed ? undefined : schedule(() => endPeriod(key), PERIOD_MS) });
  }

  function endPeriod(key: string): void {
    const counted = counts.get(key);
    counts.delete(key);
    if (!counted || counted.count === 0) return;
    writeCount(counted);
    counts.set(key, { count: 0, last: counted.last, timer: schedule(() => endPeriod(key), PERIOD_MS) });
  }

  function writeCount({ count, last }: { readonly count: number; readonly last: LoggedRefusal }): void {
    const requests = count === 1 ? '1 more request' : `${count} more requests`;
    logger.warn(printable(isReport ? { ...last, count } : last), `${requests} ${what}: ${last.reason}`);
  }

  return {
    refused,
    close(): void {
      closed = true;
      for (const counted of counts.values()) {
        counted.timer?.cancel();
        if (counted.count > 0) writeCount(counted);
      }
      counts.clear();
    },
  };
}

/** Path, request id and detail can be text of the caller: one line of bounded length. */
function printable(refusal: LoggedRefusal & { readonly count?: number }): object {
  const fields = Object.entries(refusal).map(([name, value]: [string, unknown]) => {
    return [name, typeof value === 'string' ? escapeUnsafe(value.slice(0, MAX_TEXT)) : value];
  });
  return Object.fromEntries(fields) as object;
}

/** What would have been decided about one request. */
interface Outcome {
  /** The first refusal is the one that the caller would have got; `undefined`: the request would have been accepted. */
  readonly refusal: AuthError | undefined;
  readonly auth: Auth | undefined;
  /** Scopes that the guards on trial require. */
  readonly scopes: readonly string[];
}

/** Logs where trials decide otherwise than what responds. */
export interface TrialLog {
  /** @param route - the pattern of the route, so that there are only as many lines as routes */
  compare(outcome: Outcome, responded: number, method: string, route: string): void;
  close(): void;
}

/** Makes the log for the trials of one gate, and of guards after it. */
export function trialLog(dependencies: { readonly logger: Logger; readonly schedule: Schedule }): TrialLog {
  const log = refusalLog(dependencies, { isReport: true });
  const use = scopeUse(dependencies);

  return {
    compare({ refusal, auth, scopes }, responded, method, route) {
      if (auth && scopes.length > 0 && responded < 400) use.add(auth, scopes);
      // A 403 may be about something that no token says.
      const isDifferent = refusal ? responded !== 401 && responded !== 403 : responded === 401;
      if (!isDifferent) return;
      const { issuer, clientId } = auth ?? refusal?.client ?? {};
      log.refused({
        reason: refusal?.reason ?? 'accepted',
        status: refusal?.status ?? 200,
        responded,
        issuer,
        clientId,
        method,
        path: route,
        detail: refusal?.privateDetail,
        advice: refusal ? REASONS[refusal.reason].operator : 'The gate would accept what is refused today.',
      });
    },
    close() {
      log.close();
      use.close();
    },
  };
}

/** How often the unused scopes of clients are logged, and of how many clients. */
const UNUSED_EVERY_MS = 600_000;
const MAX_COUNTED_CLIENTS = 1_000;

/** Collects which scopes clients hold, and which of them a guard on trial has required of a request that was accepted. */
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
      if (!clients.has(clientId) && clients.size >= MAX_COUNTED_CLIENTS) return;
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
