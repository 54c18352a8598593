import type * as Pg from 'pg';
import { systemClock, systemSchedule } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { readOptions } from '../../core/options';
import type { OptionReader } from '../../core/options';
import { requireChange } from '../generation';
import type { GenerationLog, LogReader, Mark } from '../log';
import { describeFailure } from '../source-error';
import { loadIfInstalled, loadPackage, readStoreUrl } from '../source-url';
import type { SourceDependencies } from '../source-url';
import { postgresReader } from './reader';
import { postgresStatements, postgresTable, prepareTable } from './schema';
import { postgresSessions } from './sessions';
import type { PostgresClient, PostgresPool, PostgresQuery } from './sessions';

/** Options of `postgresGenerations()`. */
export interface PostgresGenerationsOptions extends Pick<Dependencies, 'clock' | 'schedule' | 'logger'> {
  /**
   * `Pool` of pg 8, or an object of the same shape; connected to a standby, the log can only be read. The caller ends it.
   * Every reader keeps one connection, so it must allow at least two; give it a `connectionTimeoutMillis`.
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

const OPTIONS = ['pool', 'table', 'createTable', 'mark', 'timeoutMs', 'clock', 'schedule', 'logger'] as const;

/**
 * A log in a table of PostgreSQL (13 or later), for reading and for appending; LISTEN is the hint. A standby can be read
 * too, by polling.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { Pool } from 'pg';
 * import { postgresGenerations } from 'tillgate/generations';
 *
 * const pool = new Pool({ connectionString: process.env['DATABASE_URL'], connectionTimeoutMillis: 5_000 });
 * const generationSource = postgresGenerations({ pool, createTable: true });
 * ```
 */
export function postgresGenerations(options: PostgresGenerationsOptions): GenerationLog {
  const given = readOptions('postgresGenerations', options, OPTIONS);
  const pool = requirePool(given, options.pool);
  const table = postgresTable(options.table ?? 'tillgate_generations');
  const create = given.boolean('createTable', false);
  const clock = given.callable('clock', systemClock);
  const schedule = given.callable('schedule', systemSchedule);
  const timeoutMs = given.number('timeoutMs', 5_000, { unit: 'ms', min: 1, max: 600_000 });
  const logger = given.logger('logger');
  const sessions = postgresSessions(pool, timeoutMs, schedule);
  const statements = postgresStatements(table);
  const prepare = (query: PostgresQuery): Promise<void> => prepareTable(query, table, create, logger);

  if (pool.options && !pool.options.connectionTimeoutMillis) {
    const detail = 'a connection attempt that hangs blocks its place in the pool; set it to 5000, for example';
    logger.warn({ table: table.name, detail }, 'the pool of PostgreSQL connections has no connectionTimeoutMillis');
  }
  // pg reports broken idle connections here; without a listener the process would end. Never removed: connections can
  // also break while the pool ends.
  pool.on?.('error', (error) => {
    logger.info({ table: table.name, detail: describeFailure(error) }, 'an idle connection to PostgreSQL is lost');
  });

  // A server that dies while a connection opens can report both in one packet: before the connection reaches its user,
  // nobody else listens, and the process would end.
  const opening = pool as unknown as { on?(event: 'connect', listener: (client: PostgresClient) => unknown): unknown };
  opening.on?.('connect', (client) => client.on('error', () => undefined));

  return {
    mark: given.boolean('mark', true),
    reader: (): LogReader => postgresReader({ sessions, prepare, table, statements, schedule, logger }),
    async append(changes, unit) {
      for (const change of changes) requireChange(change, clock());
      const values: unknown[] = [changes.map(([clientId]) => clientId), changes.map(([, generation]) => generation)];
      return sessions.use(async (query) => {
        await prepare(query);
        if (!unit) {
          await query(statements.append, values);
          return undefined;
        }
        const { expected, mark } = unit;
        values.push(JSON.stringify(mark), mark.keptMs);
        if (expected) values.push(expected.epoch, String(expected.unit));
        const rows = await query(expected ? statements.next : statements.first, values);
        if (rows.length > 0) return mark;
        const [row] = (await query(statements.mark)) as { readonly mark: string }[];
        return row && (JSON.parse(row.mark) as Mark);
      });
    },
    close() {
      sessions.close();
      return Promise.resolve();
    },
  };
}

function requirePool(given: OptionReader<'pool'>, pool: PostgresPool | undefined): PostgresPool {
  if (typeof pool?.connect !== 'function') given.refuse('pool', 'a pool of connections, such as Pool of pg 8');
  if (pool.options?.max === 1) given.refuse('pool', 'a pool of at least two connections: one reads, one appends');
  return pool;
}

/**
 * Makes the source for a `postgres://` URL of libpq and pg. In its query, `sslmode` configures TLS, `table` names the
 * table, which is created if it does not exist, and `mark=off` is for a log without a publisher's mark.
 *
 * @throws TypeError when the URL is wrong or pg is not installed; the message does not repeat the URL.
 */
export function sourceFromUrl(url: string, dependencies: SourceDependencies): GenerationLog {
  const { clock, schedule, logger, load = loadPackage } = dependencies;
  const { url: connectionString, place: table, mark } = readStoreUrl(url, 'postgres', 'table');
  const pg = loadIfInstalled(load, 'pg') as typeof Pg | undefined;
  if (!pg) {
    throw new TypeError('generations: a postgres: URL needs the package pg, and it is not installed: npm install pg@8');
  }
  const pool = new pg.Pool({
    connectionString,
    // One reads, one appends, two are spare.
    max: 4,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'tillgate',
  });
  const source = postgresGenerations({ pool, table, mark, createTable: true, clock, schedule, logger });
  return {
    ...source,
    async close() {
      await source.close();
      if (!pool.ending) await pool.end();
    },
  };
}
