import { SourceError } from '../source-error';
import type { PostgresQuery } from './sessions';
import type { PostgresTable } from './table';

/** Blocks per round trip: some 2,000 rows. */
const BLOCKS = 24;

/** The ids and generations of some rows, not checked. */
export interface RawPage {
  readonly ids: readonly unknown[];
  readonly generations: readonly unknown[];
}

/**
 * Reads every row that the snapshot of the transaction sees, in ranges of the file's blocks, each as two JSON documents: a
 * driver takes several times as long to parse rows. No row is missed: those of the snapshot stay where they are until it
 * ends, and the lock of the first statement keeps the file from being rewritten before its size is read.
 */
export async function* wholeTable(query: PostgresQuery, { quoted, name }: PostgresTable): AsyncGenerator<RawPage> {
  await query(`LOCK TABLE ${quoted} IN ACCESS SHARE MODE`);
  const [size] = await query(
    `SELECT (pg_relation_size(to_regclass($1)) / current_setting('block_size')::bigint)::int AS blocks`,
    [quoted],
  );
  const { blocks } = (size ?? {}) as Record<string, unknown>;
  if (typeof blocks !== 'number') throw new SourceError(`PostgreSQL: the size of the table ${name} is not known`);

  const select = `SELECT json_agg(client_id)::text AS ids, json_agg(generation)::text AS generations FROM ${quoted}
    WHERE ctid >= $1::tid AND ctid < $2::tid`;
  const fetch = (from: number): Promise<readonly unknown[]> => {
    const reply = query(select, [`(${from},0)`, `(${from + BLOCKS},0)`]);
    reply.catch(() => undefined);
    return reply;
  };
  let next = blocks > 0 ? fetch(0) : undefined;
  for (let from = BLOCKS; next; from += BLOCKS) {
    const [row] = await next;
    next = from < blocks ? fetch(from) : undefined;
    yield parse(row);
  }
}

/** No row in the range: both are null. A generation beyond 2^53 becomes a number that is not one of ours. */
function parse(row: unknown): RawPage {
  const { ids, generations } = (row ?? {}) as Record<string, unknown>;
  if (ids === null && generations === null) return { ids: [], generations: [] };
  return { ids: JSON.parse(String(ids)) as unknown[], generations: JSON.parse(String(generations)) as unknown[] };
}
