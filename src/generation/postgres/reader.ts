import type { Schedule } from '../../core/clock';
import type { Logger } from '../../core/logger';
import type { Batch, LogReader, Mark } from '../log';
import { SourceError } from '../source-error';
import { BATCH } from './schema';
import type { PostgresStatements, PostgresTable } from './schema';
import type { PostgresQuery, PostgresSession, PostgresSessions } from './sessions';

/** The row that was read last. */
type Position = readonly [position: string, id: string];

/** What the statement returns. */
interface Read {
  readonly isStandby: boolean;
  /** Whether the log still has the row of the position. */
  readonly isFound: boolean;
  readonly clientIds: readonly string[] | null;
  readonly generations: readonly number[] | null;
  readonly last: Position | null;
  readonly mark: Mark | null;
}

/**
 * Opens a reader of a table, with a connection of its own. Why no change is left out: positions become visible in order, so
 * what a snapshot lacks gets a higher position than what it has. A log that went back, because it was restored or a
 * standby was promoted, is a state that it once had: if it still has the row of the position, it has every row that was
 * read, and what follows them follows the position. If it does not, or has another row there, all of it is read again.
 */
export function postgresReader(options: {
  readonly sessions: PostgresSessions;
  /** Runs on every new connection. */
  readonly prepare: (query: PostgresQuery) => Promise<void>;
  readonly table: PostgresTable;
  readonly statements: PostgresStatements;
  readonly schedule: Schedule;
  readonly logger: Logger;
}): LogReader {
  const { sessions, prepare, table, statements, schedule, logger } = options;
  let session: PostgresSession | undefined;
  let position: Position | undefined;
  /** Whether something may follow the position. */
  let isHinted = true;
  let isStandby = false;
  let isPooled = false;
  let closed = false;
  let wake = (): void => undefined;

  async function open(): Promise<PostgresSession> {
    const opened = await sessions.open(() => {
      isHinted = true;
      wake();
    });
    // Already here: a failure below destroys it.
    session = opened;
    await prepare(opened.query);
    await listen(opened.query);
    // For what was appended in the meantime.
    isHinted = true;
    return opened;
  }

  /** A standby has no LISTEN, and a pooler accepts it without effect: there, polling alone is correct too. */
  async function listen(query: PostgresQuery): Promise<void> {
    isStandby = (await query('SELECT FROM pg_is_in_recovery() AS standby WHERE standby')).length > 0;
    if (isStandby) return;
    await query(`LISTEN "${table.channel}"`);
    const heard = await query('SELECT FROM pg_listening_channels() AS heard WHERE heard = $1', [table.channel]);
    if (heard.length > 0 || isPooled) return;
    isPooled = true;
    const detail = 'connect without the pooler, or with session pooling';
    logger.warn({ table: table.name, detail }, 'LISTEN has no effect, so changes are found by polling only');
  }

  async function read(query: PostgresQuery): Promise<Batch> {
    // Before the statement: a hint that comes during it may be about a change that it does not see.
    isHinted = false;
    const [row] = await query(statements.read, [position?.[0] ?? null, position?.[1] ?? null]);
    const found = JSON.parse(String((row as Record<string, unknown> | undefined)?.['read'])) as Read;
    if (!found.isFound) {
      position = undefined;
      return read(query);
    }
    const generations = found.generations ?? [];
    const changes = (found.clientIds ?? []).map((clientId, at) => [clientId, generations[at] as number] as const);
    const end = changes.length < BATCH;
    position = found.last ?? position;
    isHinted ||= !end;
    // It was promoted: another connection can listen.
    if (isStandby && !found.isStandby) drop();
    // The mark of a snapshot is about all of its rows.
    return { changes, end, ...(end && found.mark && { mark: found.mark }) };
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = schedule(resolve, ms);
      wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  function drop(): void {
    session?.destroy();
    session = undefined;
  }

  function requireOpen(): void {
    if (closed) throw new SourceError('PostgreSQL: the reader is closed');
  }

  return {
    async next(waitMs) {
      try {
        requireOpen();
        const { query } = session ?? (await open());
        if (!isHinted && waitMs > 0) await pause(waitMs);
        requireOpen();
        return await read(query);
      } catch (error) {
        drop();
        throw error;
      }
    },
    close() {
      closed = true;
      drop();
      wake();
    },
  };
}
