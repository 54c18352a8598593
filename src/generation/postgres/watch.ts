import type { Schedule, Timer } from '../../core/clock';
import type { PostgresSession, PostgresSessions } from './sessions';
import type { PostgresTable } from './table';
import type { GenerationSource } from '../source';
import { SourceError } from '../source-error';

/** How a table is watched. */
export interface PostgresWatchOptions {
  readonly sessions: PostgresSessions;
  readonly table: PostgresTable;
  /** Pause between two questions whether the connection still listens, in ms. */
  readonly heartbeatMs: number;
  readonly schedule: Schedule;
  /** Runs before the first statement. */
  readonly prepare: () => Promise<void>;
}

/** Makes the `watch` of a table: LISTEN on a connection of its own, which is destroyed afterwards. */
export function postgresWatch(options: PostgresWatchOptions): NonNullable<GenerationSource['watch']> {
  const { sessions, table, heartbeatMs, schedule, prepare } = options;

  return async function watch(wake, lost) {
    await prepare();
    const session = await sessions.open();
    let pause: Timer | undefined;
    let stopped = false;

    function stop(): void {
      stopped = true;
      pause?.cancel();
      session.destroy();
    }

    function end(error: unknown): void {
      if (stopped) return;
      stop();
      lost?.(error);
    }

    /** A connection can be dead without any sign: only a response proves that it is not. */
    function beat(): void {
      if (stopped) return;
      pause = schedule(() => void requireListening(session, table).then(beat, end), heartbeatMs);
    }

    try {
      session.onNotification((channel) => {
        if (!stopped && channel === table.channel) wake();
      });
      await session.query(`LISTEN "${table.channel}"`);
      await requireListening(session, table);
    } catch (error) {
      stop();
      throw error;
    }
    session.onLost(end);
    beat();
    return stop;
  };
}

/** A pooler that lends connections by the statement takes LISTEN and forgets it. */
async function requireListening(session: PostgresSession, { channel }: PostgresTable): Promise<void> {
  const rows = await session.query('SELECT FROM pg_listening_channels() AS heard WHERE heard = $1', [channel]);
  if (rows.length > 0) return;
  throw new SourceError('PostgreSQL: LISTEN has no effect; connect past the pooler, or with session pooling');
}
