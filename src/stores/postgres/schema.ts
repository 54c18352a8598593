import { SourceError } from 'tillgate/generations';
import { describe } from 'tillgate/internal';
import { TABLE_REMEDY, type PostgresQuery } from './connection';

/** The trigger that gives a row its position. */
const TRIGGER = 'tillgate_append';

/** First key of the advisory lock that a transaction holds while it appends; the second one is the oid of the table. */
const APPEND_LOCK = 7_414_155;

/** PostgreSQL truncates names at 63 bytes; this leaves room for suffixes. */
const PART = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/;

/**
 * Reads the name of a table, `table` or `schema.table`; upper and lower case differ.
 *
 * @throws TypeError when it is anything else: names cannot be parameters of a statement, so they are limited to letters,
 * digits and underscores.
 */
function namesOf(name: unknown) {
  const parts = typeof name === 'string' ? name.split('.') : [];
  if (typeof name !== 'string' || parts.length > 2 || !parts.every((part) => PART.test(part))) {
    const expected = '"table" or "schema.table" of letters, digits and underscores, at most 48 characters each';
    throw new TypeError(`postgresGenerations(): option "table" must be ${expected}, got ${describe(name)}`);
  }
  const quoted = parts.map((part) => `"${part}"`).join('.');
  return { name, quoted, sequence: `${quoted.slice(0, -1)}_position"`, channel: parts.at(-1) as string };
}

/**
 * The SQL that creates a table of generations, for your own migrations: PostgreSQL 13 or later. Then one statement
 * appends a change from any language, as a part of any transaction:
 *
 * ```sql
 * INSERT INTO tillgate_generations (client_id, generation) VALUES ($1, $2)
 * ```
 *
 * @throws TypeError when `table` is not the name of a table.
 */
export function postgresSchema(table = 'tillgate_generations'): string {
  const { quoted, sequence } = namesOf(table);
  const append = `${quoted.slice(0, -1)}_append"`;
  return `\
CREATE TABLE ${quoted} (
  -- In the order of the commits; NULL until the transaction commits, 0 for the row of the mark.
  position bigint UNIQUE,
  client_id text COLLATE "C" NOT NULL,
  generation bigint NOT NULL CHECK (generation BETWEEN 0 AND 9007199254740991),
  appended_at timestamptz,
  -- Tells a row from another one that has its position after the table was restored. A primary key, because a publication
  -- of all tables needs a replica identity.
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  -- What the publisher writes every second. In this table, so that it is lost and restored together with the changes.
  mark json,
  CHECK ((client_id = '') = (mark IS NOT NULL))
);
CREATE SEQUENCE ${sequence} OWNED BY ${quoted}.position;

-- Runs while the transaction commits, which holds the lock until others see the row: so positions become visible in order,
-- and a transaction that stays open holds up no other. With the rights of the table's owner: a writer needs INSERT only.
CREATE FUNCTION ${append}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  log text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  sequence regclass := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME || '_position')::regclass;
BEGIN
  PERFORM pg_advisory_xact_lock(${APPEND_LOCK}, TG_RELID::int);
  -- Neither lower than a position that was given, nor older: the sequence can be restored without the rows and the rows
  -- without the sequence, and the clock can be set back.
  EXECUTE format('
    UPDATE %1$s AS appended SET
      position = setval($1, greatest(nextval($1), newest.position + 1)), appended_at = greatest(clock_timestamp(), newest.appended_at)
    FROM (VALUES (true)) AS one LEFT JOIN (SELECT position, appended_at FROM %1$s WHERE position > 0 ORDER BY position DESC LIMIT 1) AS newest ON true
    WHERE appended.ctid = $2 AND appended.position IS NULL', log) USING sequence, NEW.ctid;
  PERFORM pg_notify(TG_TABLE_NAME, '');
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION ${append}() FROM PUBLIC;
CREATE CONSTRAINT TRIGGER ${TRIGGER} AFTER INSERT OR UPDATE ON ${quoted} DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.position IS NULL) EXECUTE FUNCTION ${append}();
`;
}

/** Changes per batch: a few ms of work. */
export const ROWS_PER_READ = 2_000;

/** Rows that one unit removes at most: a few ms of work. */
const TRIMMED_PER_UNIT = 500;

/** The changes that are appended, numbered. */
const GIVEN = 'unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS given (client_id, generation, number)';

/**
 * A table of generations: its name, the channel of its NOTIFY, and the statements about it. `$1` and `$2` of those that
 * append are client ids and generations.
 *
 * @throws TypeError when `table` is not the name of a table
 */
export function postgresTable(
  table: unknown,
): Readonly<Record<'name' | 'channel' | 'append' | 'first' | 'next' | 'mark' | 'read', string>> {
  const names = namesOf(table);
  const { name, quoted, channel } = names;
  const unit = (replace: string): string => unitOf(names, replace);
  return {
    name,
    channel,
    append: `INSERT INTO ${quoted} (client_id, generation) SELECT client_id, generation FROM ${GIVEN} ORDER BY number`,
    /** A unit that expects no mark; `$3` is the next one, `$4` how long changes are kept, in ms. A row: it took place. */
    first: unit(
      `INSERT INTO ${quoted} (position, client_id, generation, mark) VALUES (0, '', 0, $3::json) ON CONFLICT (position) DO NOTHING`,
    ),
    /** A unit that expects the mark with epoch `$5` and number `$6`. */
    next: unit(
      `UPDATE ${quoted} SET mark = $3::json WHERE position = 0 AND mark->>'epoch' = $5::text AND mark->>'unit' = $6::text`,
    ),
    mark: `SELECT mark::text AS mark FROM ${quoted} WHERE position = 0`,
    /** What follows the row with position `$1` and id `$2`, as one JSON document: drivers parse rows slowly. */
    read: `
    WITH batch AS MATERIALIZED (
      SELECT position, id, client_id, generation FROM ${quoted}
      WHERE position > coalesce($1::bigint, 0) ORDER BY position LIMIT ${ROWS_PER_READ}
    )
    SELECT json_build_object(
      'isStandby', pg_is_in_recovery(),
      'isFound', $1::bigint IS NULL OR EXISTS (SELECT FROM ${quoted} WHERE position = $1::bigint AND id = $2::uuid),
      'clientIds', (SELECT json_agg(client_id) FROM batch),
      'generations', (SELECT json_agg(generation) FROM batch),
      'last', (SELECT json_build_array(position::text, id) FROM batch ORDER BY position DESC LIMIT 1),
      'mark', (SELECT mark FROM ${quoted} WHERE position = 0)
    )::text AS read`,
  };
}

/** One statement, so one transaction. What a unit appends gets its position here: a trigger for each row takes 30 times as long. */
function unitOf({ quoted, sequence, channel }: ReturnType<typeof namesOf>, replace: string): string {
  return `
  WITH unit AS (${replace} RETURNING true),
  lock AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(${APPEND_LOCK}, '${quoted}'::regclass::oid::int) FROM unit WHERE cardinality($1::text[]) > 0
  ),
  newest AS MATERIALIZED (
    SELECT setval('${sequence}', greatest(nextval('${sequence}'), log.position + 1) + cardinality($1::text[]) - 1) AS position,
      greatest(clock_timestamp(), log.appended_at) AS appended_at
    FROM lock LEFT JOIN (SELECT position, appended_at FROM ${quoted} WHERE position > 0 ORDER BY position DESC LIMIT 1) AS log ON true
  ),
  appended AS (
    INSERT INTO ${quoted} (position, appended_at, client_id, generation)
    SELECT newest.position - cardinality($1::text[]) + number, appended_at, client_id, generation FROM newest, ${GIVEN}
  ),
  trimmed AS (
    DELETE FROM ${quoted} WHERE EXISTS (SELECT FROM unit) AND position IN (
      SELECT position FROM (
        SELECT position, appended_at FROM ${quoted} WHERE position > 0 ORDER BY position LIMIT ${TRIMMED_PER_UNIT}
      ) AS oldest
      -- By the earlier one of two clocks: the one that is ahead must not trim what is still needed.
      WHERE appended_at < least(clock_timestamp(), to_timestamp(($3::json->>'completeMs')::float8 / 1000)) - make_interval(secs => $4::float8 / 1000)
    )
  )
  SELECT CASE WHEN cardinality($1::text[]) > 0 THEN pg_notify('${channel}', '')::text END FROM unit`;
}

/** An arbitrary number: with this lock, processes that start together create the table only once. */
const CREATION_LOCK = 7_414_155_483;

/**
 * Checks that the table is one of generations, and creates it if it does not exist.
 *
 * @throws SourceError saying what to do when it is another one
 */
export async function prepareTable(query: PostgresQuery, table: string, create: boolean): Promise<void> {
  if (!(await isMissing(query, table))) return;
  if (!create) throw new SourceError(`PostgreSQL: the table ${table} does not exist; ${TABLE_REMEDY}`);
  await query(`DO $create$ BEGIN
    PERFORM pg_advisory_xact_lock(${CREATION_LOCK});
    ${postgresSchema(table)}
    -- Another process has created it in the meantime.
    EXCEPTION WHEN duplicate_table THEN NULL;
  END $create$`);
}

/** Returns whether there is no table of this name. Reads the catalog only: a user that may append need not read the table. */
async function isMissing(query: PostgresQuery, name: string): Promise<boolean> {
  const { quoted } = namesOf(name);
  const [row] = await query(
    `SELECT (to_regclass($1) IS NULL)::text AS missing,
      EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass($1) AND tgname = $2 AND tgenabled IN ('O', 'A'))::text AS appends,
      current_setting('server_encoding') AS encoding`,
    [quoted, TRIGGER],
  );
  const { missing, appends, encoding } = (row ?? {}) as Record<string, unknown>;
  if (encoding !== 'UTF8') throw new SourceError('PostgreSQL: the encoding of the database must be UTF8');
  if (missing === 'true') return true;
  // A restore creates the triggers last: until then, a row that is inserted would stay without a position.
  if (appends !== 'true')
    throw new SourceError(`PostgreSQL: the table ${name} has no trigger ${TRIGGER}; ${TABLE_REMEDY}`);
  return false;
}
