CREATE TABLE "tillgate_generations" (
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
CREATE SEQUENCE "tillgate_generations_position" OWNED BY "tillgate_generations".position;

-- Runs while the transaction commits, which holds the lock until others see the row: so positions become visible in order,
-- and a transaction that stays open holds up no other. With the rights of the table's owner: a writer needs INSERT only.
CREATE FUNCTION "tillgate_generations_append"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  log text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  sequence regclass := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME || '_position')::regclass;
BEGIN
  PERFORM pg_advisory_xact_lock(7414155, TG_RELID::int);
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
REVOKE ALL ON FUNCTION "tillgate_generations_append"() FROM PUBLIC;
CREATE CONSTRAINT TRIGGER tillgate_append AFTER INSERT OR UPDATE ON "tillgate_generations" DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.position IS NULL) EXECUTE FUNCTION "tillgate_generations_append"();
