import type { Logger } from '../../core/logger';
import { describe } from '../../core/options';
import type { PostgresQuery, PostgresSessions } from './sessions';

/** A table of generations: its names, quoted, and the SQL about it. */
export interface PostgresTable {
  /** As configured, for messages. */
  readonly name: string;
  /** Quoted, with its schema. */
  readonly quoted: string;
  /** Channel of NOTIFY: the table's name without its schema. */
  readonly channel: string;
}

/** The trigger that sets `changed_in` and `changed_at`. */
export const STAMP_TRIGGER = 'tillgate_stamp';

/** Client id of the sentinel's row: no client id is empty. */
export const SENTINEL = '';

/** PostgreSQL truncates names at 63 bytes; this leaves room for suffixes. */
const PART = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/;

/**
 * Reads the name of a table, `table` or `schema.table`; upper and lower case differ.
 *
 * @throws TypeError when it is anything else: names cannot be parameters of a statement, so they are limited to letters,
 * digits and underscores.
 */
export function postgresTable(name: unknown): PostgresTable {
  const parts = typeof name === 'string' ? name.split('.') : [];
  if (typeof name !== 'string' || parts.length > 2 || !parts.every((part) => PART.test(part))) {
    const expected = '"table" or "schema.table" of letters, digits and underscores, at most 48 characters each';
    throw new TypeError(`postgresGenerations(): option "table" must be ${expected}, got ${describe(name)}`);
  }
  return { name, quoted: parts.map(quote).join('.'), channel: parts.at(-1) as string };
}

function quote(identifier: string): string {
  return `"${identifier}"`;
}

/**
 * The SQL that creates a table of generations, for your own migrations: PostgreSQL 13 or later. Then one statement
 * publishes a floor from any language; a number that is not higher changes nothing:
 *
 * ```sql
 * INSERT INTO tillgate_generations (client_id, generation) VALUES ($1, $2)
 * ON CONFLICT (client_id) DO UPDATE SET generation = greatest(tillgate_generations.generation, excluded.generation)
 * ```
 *
 * @throws TypeError when `table` is not the name of a table.
 */
export function postgresSchema(table = 'tillgate_generations'): string {
  const { quoted, channel } = postgresTable(table);
  const stamp = quoted.replace(/"$/, '_stamp"');
  const notify = quoted.replace(/"$/, '_notify"');
  return `\
CREATE TABLE ${quoted} (
  client_id text COLLATE "C" PRIMARY KEY,
  generation bigint NOT NULL CHECK (generation BETWEEN 0 AND 9007199254740991),
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_in xid8 NOT NULL DEFAULT pg_current_xact_id()
);
-- The row with an empty client id is the sentinel: the highest generation that the publisher has written completely.
CREATE INDEX ON ${quoted} (changed_at);
CREATE INDEX ON ${quoted} (changed_in);

-- For every writer: a number that is not higher changes nothing, a higher one is stamped with its time and its transaction.
CREATE FUNCTION ${stamp}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.generation <= OLD.generation THEN RETURN NULL; END IF;
  NEW.changed_at := clock_timestamp();
  NEW.changed_in := pg_current_xact_id();
  RETURN NEW;
END $$;
CREATE FUNCTION ${notify}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('${channel}', '');
  RETURN NULL;
END $$;
CREATE TRIGGER ${STAMP_TRIGGER} BEFORE INSERT OR UPDATE ON ${quoted} FOR EACH ROW EXECUTE FUNCTION ${stamp}();
CREATE TRIGGER tillgate_notify AFTER INSERT OR UPDATE ON ${quoted} FOR EACH ROW WHEN (NEW.client_id <> '') EXECUTE FUNCTION ${notify}();
`;
}

/** The statement that publishes: floors merge by max in the store too. */
export function upsertOf({ quoted }: PostgresTable): string {
  return `
    INSERT INTO ${quoted} AS known (client_id, generation) VALUES ($1, $2)
    ON CONFLICT (client_id) DO UPDATE SET generation = greatest(known.generation, excluded.generation)`;
}

/** How a table is created. */
export interface PreparationOptions {
  readonly sessions: PostgresSessions;
  readonly table: PostgresTable;
  /** Whether the table is created if it does not exist. */
  readonly create: boolean;
  readonly logger: Logger;
}

/** An arbitrary number: with this lock, processes that start together create the table only once. */
const CREATION_LOCK = 7_414_155_483;

/** Makes the function to call before each use of a table: it creates the table once, if configured. */
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

/** Returns whether it created the table. Checks before it locks: a user that may only read cannot lock. */
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
  // Reading pg_class makes tables visible that others have created while this transaction waited for the lock;
  // to_regclass() alone would repeat its cached result.
  const rows = await query('SELECT FROM pg_class WHERE oid = to_regclass($1)', [quoted]);
  return rows.length > 0;
}
