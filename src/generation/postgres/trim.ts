import type { Schedule } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { SourceError } from '../source-error';
import { Trimmer } from '../trimmer';
import type { PostgresQuery, PostgresSessions } from './sessions';
import { FLOORS_PER_TRIM, trimOf } from './table';
import type { PostgresTable } from './table';

/** How a publisher removes old floors. */
export interface PostgresTrimOptions {
  readonly sessions: PostgresSessions;
  readonly table: PostgresTable;
  readonly schedule: Schedule;
  readonly logger: Logger;
  /** Longest age of a token at any reader, in ms. */
  readonly maxTokenAgeMs: number;
}

/** A missing permission or index stays missing until an operator adds it. */
const PAUSE_AFTER_FAILURE_MS = 60_000;

/** Removes the floors of a table, one statement of a bounded number of rows at a time. */
export function postgresTrimmer({ sessions, table, schedule, logger, maxTokenAgeMs }: PostgresTrimOptions): Trimmer {
  const sql = trimOf(table, maxTokenAgeMs);
  let hasIndex = false;

  /** Returns how many rows it has removed. */
  async function remove(query: PostgresQuery): Promise<number> {
    hasIndex ||= (await query('SELECT FROM pg_class WHERE oid = to_regclass($1)', [table.index])).length > 0;
    // Without the index each removal would read the whole table.
    if (!hasIndex)
      throw new SourceError(`PostgreSQL: the table has no index ${table.index}; postgresSchema() has its SQL`);
    const [row] = await query(sql);
    return Number((row as { readonly removed?: unknown } | undefined)?.removed);
  }

  return new Trimmer({
    trim: async () => (await sessions.use(remove)) === FLOORS_PER_TRIM,
    warn(detail) {
      const fields = { table: table.name, detail };
      logger.warn(fields, 'old generations cannot be removed from the table, so it grows; publishing goes on');
    },
    pauseAfterFailureMs: PAUSE_AFTER_FAILURE_MS,
    schedule,
  });
}
