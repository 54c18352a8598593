import type { Logger } from '../core/logger';
import type { PostgresQuery, PostgresSessions } from './postgres-pool';
import { postgresSchema } from './postgres-table';
import type { PostgresTable } from './postgres-table';

/** How a table comes to be. */
export interface PreparationOptions {
  readonly sessions: PostgresSessions;
  readonly table: PostgresTable;
  /** Whether the table is created when it does not exist. */
  readonly create: boolean;
  readonly logger: Logger;
}

/** Any number that nobody else has: processes that start together create the table one after the other. */
const CREATION_LOCK = 7_414_155_483;

/** Makes what runs before the first use of a table; once it has succeeded it is never run again. */
export function postgresPreparation({ sessions, table, create, logger }: PreparationOptions): () => Promise<void> {
  let prepared: Promise<void> | undefined;

  async function createMissing(): Promise<void> {
    const created = await sessions.use((query) => createTable(query, table));
    if (created) logger.info({ table: table.name }, 'the table of generations is created');
  }

  return function prepare() {
    if (!create) return Promise.resolve();
    prepared ??= createMissing().catch((error: unknown) => {
      prepared = undefined;
      throw error;
    });
    return prepared;
  };
}

/** Answers whether there was no table yet. Looks before it locks: a user that may only read never needs to create. */
async function createTable(query: PostgresQuery, table: PostgresTable): Promise<boolean> {
  if (await exists(query, table)) return false;
  await query('BEGIN');
  await query('SELECT pg_advisory_xact_lock($1)', [CREATION_LOCK]);
  const missing = !(await exists(query, table));
  if (missing) await query(postgresSchema(table.name));
  await query('COMMIT');
  return missing;
}

async function exists(query: PostgresQuery, { quoted }: PostgresTable): Promise<boolean> {
  // Reading pg_class makes the server hear of tables that others have created while this transaction waited for the
  // lock; without it to_regclass() alone would repeat its earlier answer.
  const rows = await query('SELECT FROM pg_class WHERE oid = to_regclass($1)', [quoted]);
  return rows.length > 0;
}
