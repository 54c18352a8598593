import type { Timer } from '../core/clock';
import { escapeUnsafe } from '../core/logger';
import type { GateSettings } from '../gate/read-options';

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
export function printable(refusal: LoggedRefusal): object {
  const fields = Object.entries(refusal).map(([name, value]: [string, unknown]) => {
    return [name, typeof value === 'string' ? escapeUnsafe(value.slice(0, MAX_TEXT)) : value];
  });
  return Object.fromEntries(fields) as object;
}
