import type { PostgresSessions } from './postgres-pool';
import { SENTINEL, upsertOf } from './postgres-table';
import type { PostgresTable } from './postgres-table';
import { requireFloor } from './require-floor';
import type { GenerationSentinel, GenerationSource } from './source';

/** Where floors are published to. */
export interface PostgresPublisherOptions {
  readonly sessions: PostgresSessions;
  readonly table: PostgresTable;
  /** Runs before the first statement. */
  readonly prepare: () => Promise<void>;
}

/** What UTF-8 cannot say would be stored as another client id; a zero character cannot be stored at all. */
const NOT_STORABLE = /\0|\p{Surrogate}/u;

/** Makes the `publish` of a table: one statement, which is its own transaction. */
export function postgresPublisher(options: PostgresPublisherOptions): NonNullable<GenerationSource['publish']> {
  const { sessions, table, prepare } = options;
  const upsert = upsertOf(table);

  return async function publish(clientId, generation) {
    requireFloor(clientId, generation);
    if (NOT_STORABLE.test(clientId)) {
      throw new TypeError('publish(): client id must be Unicode text without zero characters to be kept in PostgreSQL');
    }
    await prepare();
    await sessions.use((query) => query(upsert, [clientId, generation]));
  };
}

/** Makes the `write` of the sentinel. */
export function sentinelWriter({ sessions, table, prepare }: PostgresPublisherOptions): GenerationSentinel['write'] {
  const upsert = upsertOf(table);

  return async function write(generation) {
    await prepare();
    await sessions.use((query) => query(upsert, [SENTINEL, generation]));
  };
}
