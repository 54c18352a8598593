import { FloorList } from '../floors';
import { isGeneration } from '../generation';
import type { PostgresQuery, PostgresSessions } from './sessions';
import { SENTINEL, STAMP_TRIGGER } from './table';
import type { PostgresTable } from './table';
import type { GenerationSentinel, GenerationSnapshot } from '../source';
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
}

/** Rows per round trip: some 100 KB, parsed in a few ms. */
const PAGE = 2_000;

// One snapshot for all statements, a new one for every read.
const BEGIN = 'BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY';

/**
 * Makes the `read` of a table. It selects what moved by transaction or by time. The transaction is right in any order
 * of commits and for any clock; the time covers a server that took over and reuses transaction numbers of lost changes.
 */
export function postgresReader(options: PostgresReaderOptions): (sinceMs: number) => Promise<GenerationSnapshot> {
  const { sessions, table, prepare } = options;
  const horizons = new Horizons();

  return async function read(sinceMs) {
    await prepare();
    const from = horizons.from(sinceMs);
    return sessions.use(async (query) => {
      await query(BEGIN);
      const { horizon, nowMs } = await readHead(query, table);
      // Transaction numbers only grow: this server was restored or failed over, and has another history.
      const rewound = horizon < from;
      if (rewound) horizons.clear();
      await declare(query, table, rewound ? EVERYTHING : from, sinceMs);
      const floors = await fetchAll(query);
      await query('COMMIT');
      horizons.note(nowMs, horizon);
      return { floors, nowMs };
    });
  };
}

async function readHead(query: PostgresQuery, table: PostgresTable): Promise<Head> {
  const [row] = await query(
    `SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS horizon,
      floor(extract(epoch FROM transaction_timestamp()) * 1000)::bigint::text AS now_ms,
      pg_is_in_recovery()::text AS standby,
      EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass($1) AND tgname = $2 AND tgenabled IN ('O', 'A'))::text
        AS stamped`,
    [table.quoted, STAMP_TRIGGER],
  );
  const { horizon, now_ms, standby, stamped } = (row ?? {}) as Record<string, unknown>;
  // A read of a standby would count as fresh, however far it lags.
  if (standby !== 'false') throw failure('this server is a standby; use the URL of the primary');
  // A restore creates the triggers last, so a half-restored table is refused too.
  if (stamped !== 'true') {
    const remedy = 'create it with createTable: true or with the SQL of postgresSchema()';
    throw failure(`the table ${table.name} does not exist or has no trigger ${STAMP_TRIGGER}; ${remedy}`);
  }
  const nowMs = decimal(now_ms);
  if (nowMs === undefined || typeof horizon !== 'string') throw failure('the server did not return its time');
  return { horizon: BigInt(horizon), nowMs };
}

/** Makes the `read` of the sentinel. */
export function sentinelReader(options: PostgresReaderOptions): GenerationSentinel['read'] {
  const { sessions, table, prepare } = options;
  const select = `SELECT generation::text AS generation FROM ${table.quoted} WHERE client_id = $1`;

  return async function read() {
    await prepare();
    const [row] = await sessions.use((query) => query(select, [SENTINEL]));
    return decimal((row as Record<string, unknown> | undefined)?.['generation']);
  };
}

/** A cursor: one pass over the rows, in pages that do not block the event loop. */
async function declare(query: PostgresQuery, { quoted }: PostgresTable, from: bigint, sinceMs: number): Promise<void> {
  const cursor = `DECLARE floors NO SCROLL CURSOR FOR SELECT client_id, generation::text AS generation FROM ${quoted}`;
  if (from === EVERYTHING) return void (await query(cursor));
  // Rows of a dump can carry higher transaction numbers than this server's: every read would return them.
  const byTransaction = 'changed_in >= $1::xid8 AND changed_in < pg_snapshot_xmax(pg_current_snapshot())';
  const byTime = 'changed_at >= to_timestamp($2::double precision / 1000)';
  await query(`${cursor} WHERE (${byTransaction}) OR ${byTime}`, [String(from), sinceMs]);
}

async function fetchAll(query: PostgresQuery): Promise<FloorList> {
  const floors = new FloorList();
  let rows: readonly unknown[];
  do {
    rows = await query(`FETCH FORWARD ${PAGE} FROM floors`);
    for (const row of rows) addFloor(floors, row);
  } while (rows.length === PAGE);
  return floors;
}

function addFloor(floors: FloorList, row: unknown): void {
  const { client_id, generation } = (row ?? {}) as Record<string, unknown>;
  const number = decimal(generation);
  if (typeof client_id !== 'string' || number === undefined) throw failure('the table has a row that is not a floor');
  if (client_id !== SENTINEL) floors.add(client_id, number);
}

/** A bigint comes as text: a double would lose digits silently. */
function decimal(text: unknown): number | undefined {
  const number = typeof text === 'string' && /^[0-9]{1,16}$/.test(text) ? Number(text) : undefined;
  return isGeneration(number) ? number : undefined;
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
  #forgottenMs = 0;

  /** Adds a read; reads of the same second become one, with the later time and the older transaction. */
  note(nowMs: number, horizon: bigint): void {
    const last = this.#reads.at(-1);
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
   * remembered reads.
   */
  from(sinceMs: number): bigint {
    if (sinceMs <= this.#forgottenMs) return EVERYTHING;
    const candidates = this.#reads.filter(({ nowMs }) => nowMs >= sinceMs).map(({ horizon }) => horizon);
    return candidates.length === 0 ? EVERYTHING : candidates.reduce(older);
  }

  /** Forgets every read, when the server has another history. */
  clear(): void {
    this.#reads = [];
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
