import type * as Pg from 'pg';
import type { Dependencies } from 'tillgate';
import { readersOf, requireChange, requireFormat } from 'tillgate/generations';
import type { Batch, GenerationLog, LogReader, Mark, Schedule, Wait } from 'tillgate/generations';
import { dependencies, loadPeer, option, readOptions, refuseOption } from 'tillgate/internal';
import type { OptionPlace, TableOf } from 'tillgate/internal';
import { loadPackage, readStoreUrl, type StoreDependencies } from '../store-url';
import { PostgresConnection, type PostgresClient, type PostgresPool, type PostgresQuery } from './connection';
import { ROWS_PER_READ, postgresTable, prepareTable } from './schema';

/** Options of `postgresGenerations()`. */
export interface PostgresGenerationsOptions extends Pick<Dependencies, 'clock' | 'schedule'> {
  /**
   * `Pool` of pg 8, or an object of the same shape; connected to a standby, the log can only be read. The caller ends it.
   * Every reader keeps one connection, and appending one more: it must allow at least two; give it a `connectionTimeoutMillis`.
   */
  readonly pool: PostgresPool;
  /** Name of the table, `table` or `schema.table`. Default `tillgate_generations`. */
  readonly table?: string | undefined;
  /** Creates the table before its first use if it does not exist. Default `false`: see `postgresSchema()`. */
  readonly createTable?: boolean | undefined;
  /**
   * Whether a publisher keeps a mark in the table. `false`: that the writer of the changes has stopped, or that the table was
   * restored from a dump, is not noticed. Default `true`.
   */
  readonly mark?: boolean | undefined;
  /** Longest time for one statement, in ms. Default 5000. */
  readonly timeoutMs?: number | undefined;
}

const POSTGRES_OPTIONS = {
  pool: option.required(option('a pool of connections, such as Pool of pg 8', readPool)),
  table: option('the name of a table', postgresTable, postgresTable('tillgate_generations')),
  createTable: option.boolean(false),
  mark: option.boolean(true),
  timeoutMs: option.number({ unit: 'milliseconds', min: 1, max: 600_000 }, 5_000),
  ...dependencies('clock', 'schedule'),
} satisfies TableOf<PostgresGenerationsOptions>;

/**
 * A log in a table of PostgreSQL (13 or later), for reading and for appending; LISTEN is the hint. A standby can be read
 * too, by polling.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { Pool } from 'pg';
 * import { postgresGenerations } from '@tillgate/stores';
 *
 * const pool = new Pool({ connectionString: process.env['DATABASE_URL'], connectionTimeoutMillis: 5_000 });
 * const generationSource = postgresGenerations({ pool, createTable: true });
 * ```
 */
export function postgresGenerations(options: PostgresGenerationsOptions): GenerationLog {
  const given = readOptions('postgresGenerations', options, POSTGRES_OPTIONS);
  const { pool, table, createTable, mark: hasMark, timeoutMs, clock, schedule } = given;
  const limits = { pool, timeoutMs, schedule };
  const prepare = (query: PostgresQuery): Promise<void> => prepareTable(query, table.name, createTable);
  const writer = new PostgresConnection(limits);

  // pg reports broken idle connections here; without a listener the process would end. Never removed: connections can
  // also break while the pool ends.
  pool.on?.('error', () => undefined);
  // A server that dies while a connection opens can report both in one packet: before the connection reaches its user,
  // nobody else listens, and the process would end.
  const opening = pool as unknown as { on?(event: 'connect', listener: (client: PostgresClient) => unknown): unknown };
  opening.on?.('connect', (client) => client.on('error', () => undefined));

  const readers = readersOf(schedule, (wait) => new PostgresReader({ ...limits, prepare, table, wait }));
  return {
    mark: hasMark,
    reader: readers.reader,
    async append(changes, unit) {
      for (const change of changes) requireChange(change, clock());
      const values: unknown[] = [changes.map(([clientId]) => clientId), changes.map(([, generation]) => generation)];
      return writer.use(async (query) => {
        await prepare(query);
        if (!unit) {
          await query(table.append, values);
          return undefined;
        }
        const { expected, mark } = unit;
        values.push(JSON.stringify(mark), mark.keptMs);
        if (expected) values.push(expected.epoch, String(expected.unit));
        const rows = await query(expected ? table.next : table.first, values);
        if (rows.length > 0) return mark;
        const [row] = (await query(table.mark)) as { readonly mark: string }[];
        return row && readMark(JSON.parse(row.mark) as StoredMark);
      });
    },
    close() {
      readers.close();
      writer.close();
      return Promise.resolve();
    },
  };
}

function readPool(given: unknown, at: OptionPlace): PostgresPool | undefined {
  const pool = given as PostgresPool | null;
  if (typeof pool?.connect !== 'function') return undefined;
  if (pool.options?.max === 1) refuseOption(at, 'a pool of at least two connections: one reads, one appends', pool);
  return pool;
}

/**
 * Makes the source for a `postgres://` URL of libpq and pg. In its query, `sslmode` configures TLS, `table` names the
 * table, which is created if it does not exist, and `mark=off` is for a log without a publisher's mark.
 *
 * @throws TypeError when the URL is wrong or pg is not installed in a version that works; the message does not repeat the URL.
 */
export function postgresFromUrl(url: string, dependencies: StoreDependencies): GenerationLog {
  const { clock, schedule, load = loadPackage } = dependencies;
  const { url: connectionString, place: table, mark } = readStoreUrl(url, 'postgres', 'table');
  const pg = loadPeer<typeof Pg>('pg', load);
  if (!pg.module) {
    throw new TypeError(`generations: a postgres: URL needs the package pg (${pg.problem}): npm install pg@8`);
  }
  const pool = new pg.module.Pool({
    connectionString,
    // One reads, one appends.
    max: 2,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'tillgate',
  });
  const source = postgresGenerations({ pool, table, mark, createTable: true, clock, schedule });
  return {
    ...source,
    async close() {
      await source.close();
      if (!pool.ending) await pool.end();
    },
  };
}

/** The mark in the table. */
type StoredMark = Mark & { readonly format?: unknown };

/** @throws SourceError when the table is in a later format */
function readMark({ format, ...mark }: StoredMark): Mark {
  requireFormat(format);
  return mark;
}

/** What the statement returns. */
interface Read {
  readonly isStandby: boolean;
  /** Whether the log still has the row of the position. */
  readonly isFound: boolean;
  readonly clientIds: readonly string[] | null;
  readonly generations: readonly number[] | null;
  readonly last: readonly [position: string, id: string] | null;
  readonly mark: StoredMark | null;
}

interface ReaderOptions {
  readonly pool: PostgresPool;
  readonly timeoutMs: number;
  readonly schedule: Schedule;
  readonly prepare: (query: PostgresQuery) => Promise<void>;
  readonly table: ReturnType<typeof postgresTable>;
  readonly wait: Wait;
}

/**
 * A reader of a table, with a connection of its own. Why no change is left out: positions become visible in order, so
 * what a snapshot lacks gets a higher position than what it has. A log that went back, because it was restored or a
 * standby was promoted, is a state that it once had: if it still has the row of the position, it has every row that was
 * read, and what follows them follows the position. If it does not, or has another row there, all of it is read again.
 */
class PostgresReader implements LogReader {
  readonly #options: ReaderOptions;
  readonly #connection: PostgresConnection;
  /** The row that was read last. */
  #position: Read['last'] = null;
  /** Whether something may follow the position. */
  #isHinted = true;
  /** Of the mark that was read last. */
  #epoch: string | undefined;
  /** The publisher appends its record again, for every process in the same second: they read it at different times. */
  #isSpread = false;
  #isStandby = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#connection = new PostgresConnection({
      ...options,
      setUp: async (query) => {
        await options.prepare(query);
        // A standby has no LISTEN, and a pooler accepts it without effect: there, polling alone is correct too.
        this.#isStandby = (await query('SELECT FROM pg_is_in_recovery() AS standby WHERE standby')).length > 0;
        if (!this.#isStandby) await query(`LISTEN "${options.table.channel}"`);
        // For what was appended in the meantime.
        this.#isHinted = true;
      },
      wake: () => {
        this.#isHinted = true;
        if (!this.#isSpread) options.wait.wake();
      },
    });
  }

  async next(waitMs: number): Promise<Batch> {
    return this.#connection.use(async (query) => {
      const pauseMs = this.#isSpread ? Math.random() * waitMs : waitMs;
      if (waitMs > 0 && (this.#isSpread || !this.#isHinted)) await this.#options.wait.pause(pauseMs);
      return this.#read(query);
    });
  }

  close(): void {
    this.#connection.close();
  }

  async #read(query: PostgresQuery): Promise<Batch> {
    // Before the statement: a hint that comes during it may be about a change that it does not see.
    this.#isHinted = false;
    const [row] = await query(this.#options.table.read, [this.#position?.[0] ?? null, this.#position?.[1] ?? null]);
    const found = JSON.parse(String((row as Record<string, unknown> | undefined)?.['read'])) as Read;
    const mark = found.mark && readMark(found.mark);
    this.#isSpread = this.#epoch !== undefined && mark?.epoch !== this.#epoch;
    this.#epoch = mark?.epoch;
    if (!found.isFound) {
      this.#position = null;
      return this.#read(query);
    }
    const generations = found.generations ?? [];
    const changes = (found.clientIds ?? []).map((clientId, at) => [clientId, generations[at] as number] as const);
    const end = changes.length < ROWS_PER_READ;
    this.#position = found.last ?? this.#position;
    this.#isHinted ||= !end;
    // It was promoted: another connection can listen.
    if (this.#isStandby && !found.isStandby) this.#connection.drop();
    // The mark of a snapshot is about all of its rows.
    return { changes, end, ...(end && mark && { mark }) };
  }
}
