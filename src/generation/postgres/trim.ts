import type { Schedule, Timer } from '../../core/clock';
import { withTimeLimit } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { SourceError, describeFailure, noResponse } from '../source-error';
import type { PostgresQuery, PostgresSessions } from './sessions';
import { FLOORS_PER_TRIM, trimOf } from './table';
import type { PostgresTable } from './table';

/** How old floors are removed. */
export interface TrimOptions {
  readonly sessions: PostgresSessions;
  readonly table: PostgresTable;
  readonly schedule: Schedule;
  readonly logger: Logger;
  /** Longest age of a token at any reader, in ms. */
  readonly maxTokenAgeMs: number;
}

/** Removes floors that can discard no living token. */
export interface Trim {
  /** To call after a floor was published. Returns immediately, never throws. */
  due(): void;
  /** Ends a removal that is under way. */
  close(): Promise<void>;
}

const PAUSE_MS = 1_000;
const PAUSE_AFTER_FAILURE_MS = 60_000;
const CLOSE_TIMEOUT_MS = 500;

/** Makes the trim: at most one statement per second, of a bounded number of rows. Going on after a full one is up to it. */
export function postgresTrim({ sessions, table, schedule, logger, maxTokenAgeMs }: TrimOptions): Trim {
  const sql = trimOf(table, maxTokenAgeMs);
  let running: Promise<void> | undefined;
  let timer: Timer | undefined;
  let hasIndex = false;
  let isFailing = false;
  let closed = false;

  function due(): void {
    if (!closed) running ??= run();
  }

  async function run(): Promise<void> {
    let isFull = false;
    try {
      isFull = (await sessions.use(remove)) === FLOORS_PER_TRIM;
      isFailing = false;
    } catch (error) {
      if (!isFailing && !closed) {
        const fields = { table: table.name, detail: describeFailure(error) };
        logger.warn(fields, 'old generations cannot be removed from the table, so it grows; publishing goes on');
      }
      isFailing = true;
    }
    if (closed) return;
    const pauseMs = isFailing ? PAUSE_AFTER_FAILURE_MS : PAUSE_MS;
    timer = schedule(() => {
      running = undefined;
      if (isFull) due();
    }, pauseMs);
  }

  /** Returns how many rows it has removed. */
  async function remove(query: PostgresQuery): Promise<number> {
    hasIndex ||= (await query('SELECT FROM pg_class WHERE oid = to_regclass($1)', [table.index])).length > 0;
    // Without the index each removal would read the whole table.
    if (!hasIndex)
      throw new SourceError(`PostgreSQL: the table has no index ${table.index}; postgresSchema() has its SQL`);
    const [row] = await query(sql);
    return Number((row as { readonly removed?: unknown } | undefined)?.removed);
  }

  return {
    due,
    async close() {
      closed = true;
      timer?.cancel();
      // A process that publishes once and ends, as the command line does, removes its share too.
      await withTimeLimit(Promise.resolve(running), CLOSE_TIMEOUT_MS, schedule, noResponse).catch(() => undefined);
    },
  };
}
