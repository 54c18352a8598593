import { FloorList } from '../floors';
import { isGeneration, parseGeneration } from '../generation';
import type { PostgresQuery, PostgresSessions } from './sessions';
import { HORIZON, SENTINEL, STAMP_TRIGGER } from './table';
import type { PostgresTable } from './table';
import { wholeTable } from './whole';
import type { RawPage } from './whole';
import type { GenerationSentinel, GenerationSnapshot, GenerationSource, TakePage } from '../source';
import { SourceError } from '../source-error';

/** Where floors are read from. */
export interface PostgresReaderOptions {
  readonly sessions: PostgresSessions;
  readonly table: PostgresTable;
  /** Runs before the first statement. */
  readonly prepare: () => Promise<void>;
}

/** State of a read's transaction. */
interface Head {
  /** The oldest open transaction: every earlier one has ended, and its changes are visible. */
  readonly horizon: bigint;
  /** The server's clock at the start of the transaction, before its snapshot. */
  readonly nowMs: number;
  /** Changes when the server or the file of the table is another one. */
  readonly history: string;
  /** Whether the table is one file of rows that can be read by ranges of its blocks. */
  readonly hasBlocks: boolean;
}

/** Rows per round trip: some 100 KB, parsed in a few ms. */
const PAGE = 2_000;

/** Room for a clock that steps back a little: past it the whole table would be read. */
const CLOCK_STEP_MS = 1_000;

// One snapshot for all statements, a new one for every read.
const BEGIN = 'BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY';

/**
 * Makes the `read` of a table. It selects what moved by transaction or by time, so that no read after the first one costs
 * more than the changes. Why no floor is missed:
 *
 * - Same history: a change that an earlier snapshot could not see is of its oldest open transaction or a later one
 *   (`Horizons`), in any order of commits and for any clock. So no overlap in time is needed.
 * - Another history (a promoted standby, another server, a restored backup, a restart): transaction numbers may be used
 *   twice, and a clock may lag. All of these start a server process, so its start time differs, and all is read. A table
 *   that was dropped or truncated in place has another oid or file.
 * - A server that loses asynchronous commits in a crash keeps its start time, and reuses their numbers for changes that are
 *   made after the crash: those are found by time, on the same clock, or all is read because the numbers have fallen.
 */
export function postgresReader(options: PostgresReaderOptions): GenerationSource['read'] {
  const { sessions, table, prepare } = options;
  const horizons = new Horizons();

  return async function read(sinceMs, takePage) {
    await prepare();
    return sessions.use(async (query) => {
      await query(BEGIN);
      const head = await readHead(query, table);
      const from = horizons.from(sinceMs, head);
      const isWhole = from === EVERYTHING && head.hasBlocks;
      if (!isWhole) await declare(query, table, from, sinceMs);
      const fetched = await takeAll(isWhole ? wholeTable(query, table) : selected(query), takePage);
      await query('COMMIT');
      horizons.note(head);
      return { ...fetched, nowMs: head.nowMs, resumeMs: head.nowMs - CLOCK_STEP_MS };
    });
  };
}

async function readHead(query: PostgresQuery, table: PostgresTable): Promise<Head> {
  const [row] = await query(
    `SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS horizon,
      floor(extract(epoch FROM transaction_timestamp()) * 1000)::bigint::text AS now_ms,
      pg_is_in_recovery()::text AS standby,
      (SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), oid, relfilenode)
        FROM pg_class WHERE oid = to_regclass($1)) AS history,
      EXISTS (SELECT FROM pg_class JOIN pg_am ON pg_am.oid = relam
        WHERE pg_class.oid = to_regclass($1) AND relkind = 'r' AND amname = 'heap' AND NOT relhassubclass
          AND current_setting('server_version_num')::int >= 140000)::text AS blocks,
      EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass($1) AND tgname = $2 AND tgenabled IN ('O', 'A'))::text
        AS stamped`,
    [table.quoted, STAMP_TRIGGER],
  );
  const { horizon, now_ms, standby, history, stamped, blocks } = (row ?? {}) as Record<string, unknown>;
  // A read of a standby would count as fresh, however far it lags.
  if (standby !== 'false') throw failure('this server is a standby; use the URL of the primary');
  // A restore creates the triggers last, so a half-restored table is refused too.
  if (stamped !== 'true') {
    const remedy = 'create it with createTable: true or with the SQL of postgresSchema()';
    throw failure(`the table ${table.name} does not exist or has no trigger ${STAMP_TRIGGER}; ${remedy}`);
  }
  const nowMs = parseGeneration(now_ms);
  if (nowMs === undefined || typeof horizon !== 'string') throw failure('the server did not return its time');
  return { horizon: BigInt(horizon), nowMs, history: String(history), hasBlocks: blocks === 'true' };
}

/** Makes the `read` of the sentinel. */
export function sentinelReader(options: PostgresReaderOptions): GenerationSentinel['read'] {
  const { sessions, table, prepare } = options;
  const select = `SELECT generation::text AS generation FROM ${table.quoted} WHERE client_id = $1`;

  return async function read() {
    await prepare();
    const [row] = await sessions.use((query) => query(select, [SENTINEL]));
    return parseGeneration((row as Record<string, unknown> | undefined)?.['generation']);
  };
}

/** A cursor: one pass over the rows, in pages that do not block the event loop. */
async function declare(query: PostgresQuery, { quoted }: PostgresTable, from: bigint, sinceMs: number): Promise<void> {
  const cursor = `DECLARE floors NO SCROLL CURSOR FOR SELECT client_id, generation::text AS generation FROM ${quoted}`;
  if (from === EVERYTHING) return void (await query(cursor));
  // Rows of a dump can carry higher transaction numbers than this server's: every read would return them.
  const byTransaction = 'changed_in >= $1::xid8 AND changed_in < pg_snapshot_xmax(pg_current_snapshot())';
  const byTime = 'changed_at >= to_timestamp($2::double precision / 1000)';
  const where = `(${byTransaction}) OR ${byTime} OR client_id = $3`;
  await query(`${cursor} WHERE ${where}`, [String(from), sinceMs, HORIZON]);
}

type Fetched = Pick<GenerationSnapshot, 'floors' | 'completeFromMs'>;

/** The rows of the cursor. The next page is fetched while the previous one is taken. */
async function* selected(query: PostgresQuery): AsyncGenerator<RawPage> {
  const fetch = (): Promise<readonly unknown[]> => {
    const reply = query(`FETCH FORWARD ${PAGE} FROM floors`);
    reply.catch(() => undefined);
    return reply;
  };
  let next: Promise<readonly unknown[]> | undefined = fetch();
  while (next) {
    const rows: readonly unknown[] = await next;
    next = rows.length === PAGE ? fetch() : undefined;
    const fields = rows.map((row) => (row ?? {}) as Record<string, unknown>);
    yield { ids: fields.map((row) => row['client_id']), generations: fields.map((row) => parseGeneration(row['generation'])) };
  }
}

async function takeAll(pages: AsyncIterable<RawPage>, takePage: TakePage | undefined): Promise<Fetched> {
  const left = new FloorList();
  let completeFromMs: number | undefined;
  for await (const { ids, generations } of pages) {
    const page = takePage ? new FloorList() : left;
    if (ids.length !== generations.length) throw failure('a page has not as many generations as client ids');
    for (const [index, id] of ids.entries()) {
      const generation = generations[index];
      if (typeof id !== 'string' || !isGeneration(generation)) throw failure('the table has a row that is not a floor');
      if (id === HORIZON) completeFromMs = generation;
      else if (id !== SENTINEL) page.add(id, generation);
    }
    await takePage?.(page);
  }
  return { floors: left, ...(completeFromMs !== undefined && { completeFromMs }) };
}

function failure(detail: string): SourceError {
  return new SourceError(`PostgreSQL: ${detail}`);
}

/** A complete read: its time, and the oldest transaction that was open at its snapshot. */
interface PastRead {
  readonly nowMs: number;
  readonly horizon: bigint;
}

/** No transaction is older: everything is read. */
export const EVERYTHING = 0n;

const MAX_READS = 1_024;

/**
 * Remembers which transactions earlier reads have covered. Transactions get their number before they write and may
 * commit in any order, so the time of a change does not tell whether an earlier read has seen it. The horizon does: what
 * a snapshot could not see is written by its oldest open transaction or a later one.
 */
export class Horizons {
  #reads: readonly PastRead[] = [];
  #history: string | undefined;
  /** Whether there was another history before this one. */
  #isSuccessor = false;
  #forgottenMs = 0;

  /** Adds a complete read; reads of the same second become one, with the later time and the older transaction. */
  note({ nowMs, horizon, history }: Omit<Head, 'hasBlocks'>): void {
    // A late end of a read of the former server.
    if (history !== this.#history) return;
    const last = this.#reads.at(-1);
    // Readers that share this source may not have read this server yet: whose last read is older reads everything.
    if (!last && this.#isSuccessor) this.#forgottenMs = nowMs - CLOCK_STEP_MS - 1;
    if (!last || secondOf(last.nowMs) !== secondOf(nowMs)) {
      this.#reads = [...this.#reads, { nowMs, horizon }];
    } else {
      const merged = { nowMs: Math.max(last.nowMs, nowMs), horizon: older(last.horizon, horizon) };
      this.#reads = [...this.#reads.slice(0, -1), merged];
    }
    if (this.#reads.length > MAX_READS) this.#forgetFirst();
  }

  /**
   * The first transaction that a read since `sinceMs` must cover; `EVERYTHING` if `sinceMs` is before or after all
   * remembered reads, or if the server has another history than at those.
   */
  from(sinceMs: number, { horizon, history }: Pick<Head, 'horizon' | 'history'>): bigint {
    const from = this.#lookUp(sinceMs);
    // Transaction numbers only grow: a lower one is of another history too.
    if (history === this.#history && horizon >= from) return from;
    this.#isSuccessor = this.#history !== undefined;
    this.#history = history;
    this.#reads = [];
    return EVERYTHING;
  }

  #lookUp(sinceMs: number): bigint {
    if (sinceMs <= this.#forgottenMs) return EVERYTHING;
    const candidates = this.#reads.filter(({ nowMs }) => nowMs >= sinceMs).map(({ horizon }) => horizon);
    return candidates.length === 0 ? EVERYTHING : candidates.reduce(older);
  }

  #forgetFirst(): void {
    const [first, ...rest] = this.#reads;
    this.#reads = rest;
    this.#forgottenMs = Math.max(this.#forgottenMs, first?.nowMs ?? 0);
  }
}

function older(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1000);
}
