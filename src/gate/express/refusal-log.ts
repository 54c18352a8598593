import type { Schedule, Timer } from '../core/clock';
import { consoleLogger, escapeUnsafe } from '../core/logger';
import type { Logger } from '../core/logger';

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
