import type { Logger } from '../../core/logger';
import { describe } from '../../core/options';
import { KEPT_LONGER_MS } from '../floors';
import { FIRST_TIME_MS } from '../generation';
import type { PostgresQuery, PostgresSessions } from './sessions';

/** A table of generations: its names, quoted, and the SQL about it. */
export interface PostgresTable {
  /** As configured, for messages. */
  readonly name: string;
  /** Quoted, with its schema. */
  readonly quoted: string;
  /** Channel of NOTIFY: the table's name without its schema. */
  readonly channel: string;
  /** Name of the index by which old floors are found, quoted, with its schema. */
  readonly index: string;
}

/** The trigger that sets `changed_in` and `changed_at`. */
export const STAMP_TRIGGER = 'tillgate_stamp';

/** Client id of the sentinel's row: no client id is empty. */
export const SENTINEL = '';

/**
 * Client id of the row whose generation is the horizon: lower floors that are times may have been removed. In the table
 * itself, so that it is restored and lost together with the floors. RFC 6749 (appendix A.1) allows no such client id.
 */
export const HORIZON = '\u0001horizon';
/** The same, in SQL. */
const HORIZON_LITERAL = "E'\\x01horizon'";

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
  const quoted = parts.map(quote).join('.');
  return { name, quoted, channel: parts.at(-1) as string, index: quoted.replace(/"$/, '_age"') };
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
  const { quoted, channel, index } = postgresTable(table);
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
-- The row ${HORIZON_LITERAL} is the horizon: lower generations that are times may have been removed.
CREATE INDEX ON ${quoted} (changed_at);
CREATE INDEX ON ${quoted} (changed_in);
CREATE INDEX ${index.replace(/^.*\./, '')} ON ${quoted} (generation) WHERE generation >= ${FIRST_TIME_MS};

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
CREATE TRIGGER tillgate_notify AFTER INSERT OR UPDATE ON ${quoted} FOR EACH ROW WHEN (NEW.client_id NOT IN ('', ${HORIZON_LITERAL})) EXECUTE FUNCTION ${notify}();
`;
}

/** The statement that writes one row: floors merge by max in the store too. */
export function upsertOf({ quoted }: PostgresTable): string {
  return `INSERT INTO ${quoted} AS known (client_id, generation) VALUES ($1, $2) ${MERGE}`;
}

const MERGE = 'ON CONFLICT (client_id) DO UPDATE SET generation = greatest(known.generation, excluded.generation)';

/**
 * The statement that publishes floors of different clients, given as two arrays. In the order of the client ids, so that
 * publishers never wait for each other in a circle. Leaves out floors that a trim would remove: a token server that
 * starts publishes every floor that it has.
 */
export function publishOf({ quoted }: PostgresTable, maxTokenAgeMs: number): string {
  const horizon = `(SELECT generation FROM ${quoted} WHERE client_id = ${HORIZON_LITERAL})`;
  return `
    INSERT INTO ${quoted} AS known (client_id, generation)
    SELECT client_id, generation FROM unnest($1::text[], $2::bigint[]) AS given (client_id, generation)
    WHERE generation < ${FIRST_TIME_MS} OR generation >= least(coalesce(${horizon}, 0), ${cutoffOf(maxTokenAgeMs)})
    ORDER BY client_id COLLATE "C"
    ${MERGE}`;
}

/** Rows per statement that removes: some 20 ms of work. */
export const FLOORS_PER_TRIM = 1_000;
/** The horizon follows the clock in such steps while nothing is removed. */
const HORIZON_STEP_MS = 60_000;

/** The oldest generation that a reader may need, by the server's clock: the same for all statements of a transaction. */
function cutoffOf(maxTokenAgeMs: number): string {
  return `(floor(extract(epoch FROM transaction_timestamp()) * 1000)::bigint - ${maxTokenAgeMs + KEPT_LONGER_MS})`;
}

/**
 * The statement that raises the horizon and removes old floors, in one transaction: no reader sees one without the other.
 * A row that another transaction holds is skipped, so a trim waits for no publisher. A row that rises before it is locked
 * is compared again by PostgreSQL, in its new version, and stays.
 */
export function trimOf({ quoted }: PostgresTable, maxTokenAgeMs: number): string {
  const cutoff = cutoffOf(maxTokenAgeMs);
  const isOld = `generation >= ${FIRST_TIME_MS} AND generation < ${cutoff}`;
  return `
    WITH old AS MATERIALIZED (
      SELECT client_id FROM ${quoted} WHERE ${isOld} AND client_id NOT IN ('', ${HORIZON_LITERAL})
      ORDER BY generation LIMIT ${FLOORS_PER_TRIM} FOR UPDATE SKIP LOCKED
    ), horizon AS (
      INSERT INTO ${quoted} AS known (client_id, generation)
      SELECT ${HORIZON_LITERAL}, ${cutoff} WHERE ${cutoff} >= 0
      ON CONFLICT (client_id) DO UPDATE SET generation = excluded.generation
      WHERE excluded.generation > known.generation + CASE WHEN EXISTS (SELECT FROM old) THEN 0 ELSE ${HORIZON_STEP_MS} END
    ), removed AS (
      DELETE FROM ${quoted} AS floor USING old WHERE floor.client_id = old.client_id AND ${isOld} RETURNING 1
    )
    SELECT count(*)::text AS removed FROM removed`;
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
