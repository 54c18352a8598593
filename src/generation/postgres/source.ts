import type * as Pg from 'pg';
import { systemSchedule } from '../../core/clock';
import type { Schedule, Timer } from '../../core/clock';
import type { Dependencies } from '../../core/dependencies';
import { consoleLogger } from '../../core/logger';
import { readOptions } from '../../core/options';
import type { OptionReader } from '../../core/options';
import { requirePublishable } from '../generation';
import { FloorBatches } from './batch';
import { postgresReader, sentinelReader } from './read';
import type { PostgresReaderOptions } from './read';
import { PostgresSessions, isRefusedRow } from './sessions';
import type { PostgresClient, PostgresPool, PostgresSession } from './sessions';
import { HORIZON, SENTINEL, postgresPreparation, postgresTable, publishOf, upsertOf } from './table';
import type { PostgresTable } from './table';
import { postgresTrimmer } from './trim';
import type { GenerationSentinel, GenerationSource, PublishingSource } from '../source';
import { SourceError, describeFailure } from '../source-error';
import { loadIfInstalled, loadPackage, readStoreUrl } from '../source-url';
import type { SourceDependencies } from '../source-url';

/** Options of `postgresGenerations()`. */
export interface PostgresGenerationsOptions extends Pick<Dependencies, 'schedule' | 'logger'> {
  /**
   * `Pool` of pg 8, or an object of the same shape, connected to the primary. The caller ends it. A watch keeps one
   * connection, so it must allow at least two; give it a `connectionTimeoutMillis`.
   */
  readonly pool: PostgresPool;
  /** Name of the table, `table` or `schema.table`. Default `tillgate_generations`. */
  readonly table?: string | undefined;
  /** Creates the table before its first use if it does not exist. Default `false`: see `postgresSchema()`. */
  readonly createTable?: boolean | undefined;
  /**
   * Refuses all tokens after a start until the publisher's sentinel shows that the table is complete; see
   * `GenerationSentinel`. `false` for publishers that write none. Default `true`.
   */
  readonly sentinel?: boolean | undefined;
  /**
   * The longest `maxTokenAgeSeconds` of the processes that read, in ms. `publish()` removes floors that are an hour older:
   * they can discard no living token. A process that accepts longer tokens responds with 503. Default 86400000, a day.
   */
  readonly maxTokenAgeMs?: number | undefined;
  /** Longest time for one statement, in ms. Default 5000. */
  readonly timeoutMs?: number | undefined;
  /** Pause between two checks of the connection that listens, in ms. Default 15000. */
  readonly heartbeatMs?: number | undefined;
}

type Key = keyof PostgresGenerationsOptions;

const OPTIONS = [
  ...(['pool', 'table', 'createTable', 'sentinel', 'maxTokenAgeMs', 'timeoutMs', 'heartbeatMs'] as const),
  ...(['schedule', 'logger'] as const),
];

/**
 * Floors in one table of PostgreSQL (13 or later), for reading and for publishing; LISTEN is the hint.
 *
 * @throws TypeError when an option is wrong.
 * @example
 * ```ts
 * import { Pool } from 'pg';
 * import { postgresGenerations } from 'tillgate/generations';
 *
 * const pool = new Pool({ connectionString: process.env['DATABASE_URL'] });
 * const generations = postgresGenerations({ pool, createTable: true });
 * ```
 */
export function postgresGenerations(options: PostgresGenerationsOptions): PublishingSource {
  const given = readOptions<Key>('postgresGenerations', options, OPTIONS);
  const pool = requirePool(given, options.pool);
  const table = postgresTable(options.table ?? 'tillgate_generations');
  const logger = options.logger ?? consoleLogger;
  const schedule = given.callable('schedule', systemSchedule);
  const timeoutMs = given.number('timeoutMs', 5_000, { unit: 'ms', min: 1, max: 600_000 });
  const maxTokenAgeMs = given.number('maxTokenAgeMs', 86_400_000, { unit: 'ms', min: 1_000, integer: true });
  const heartbeatMs = given.number('heartbeatMs', 15_000, { unit: 'ms', min: 1, max: 3_600_000 });
  const sessions = new PostgresSessions({ pool, timeoutMs, schedule });
  const create = given.boolean('createTable', false);
  const withSentinel = given.boolean('sentinel', true);
  const prepare = postgresPreparation({ sessions, table, create, logger });

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
  (pool as unknown as ConnectEvents).on?.('connect', (client) => client.on('error', () => undefined));

  const publishing = publishOf(table, maxTokenAgeMs);
  const trim = postgresTrimmer({ sessions, table, schedule, logger, maxTokenAgeMs });
  const batches = new FloorBatches({
    // One statement, which is its own transaction.
    async send(floors) {
      await prepare();
      const [clientIds, generations] = [floors.map(([clientId]) => clientId), floors.map(([, number]) => number)];
      await sessions.use((query) => query(publishing, [clientIds, generations]));
    },
    isRefusal: isRefusedRow,
  });

  const sentinel: GenerationSentinel = {
    read: sentinelReader({ sessions, table, prepare }),
    async write(generation) {
      await prepare();
      await sessions.use((query) => query(upsertOf(table), [SENTINEL, generation]));
    },
  };

  return {
    ...(withSentinel && { sentinel }),
    read: postgresReader({ sessions, table, prepare }),
    watch: postgresWatch({ sessions, table, prepare, heartbeatMs, schedule }),
    async publish(clientId, generation) {
      requirePublishable(clientId, generation);
      requireStorable(clientId);
      await batches.publish(clientId, generation);
      trim.request();
    },
    async close() {
      await trim.close();
      sessions.close();
    },
  };
}

/** The event of pg for each new connection. */
interface ConnectEvents {
  on?(event: 'connect', listener: (client: PostgresClient) => unknown): unknown;
}

function requirePool(given: OptionReader<Key>, pool: PostgresPool | undefined): PostgresPool {
  if (typeof pool?.connect !== 'function') given.refuse('pool', 'a pool of connections, such as Pool of pg 8');
  if (pool.options?.max === 1) given.refuse('pool', 'a pool of at least two connections: one listens, one reads');
  return pool;
}

/** One listens, one reads, one publishes, one is spare. */
const CONNECTIONS = 4;
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 10_000;

/**
 * Makes the source for a `postgres://` URL of libpq and pg. In its query, `sslmode` configures TLS, `table` names the
 * table, which is created if it does not exist, and `sentinel=off` switches the sentinel off.
 *
 * @throws TypeError when the URL is wrong or pg is not installed; the message does not repeat the URL.
 */
export function sourceFromUrl(url: string, dependencies: SourceDependencies): PublishingSource {
  const { schedule, logger, maxTokenAgeMs, load = loadPackage } = dependencies;
  const { url: connectionString, place: table, sentinel } = readStoreUrl(url, 'postgres', 'table');
  const pg = loadIfInstalled(load, 'pg') as typeof Pg | undefined;
  if (!pg) {
    throw new TypeError('generations: a postgres: URL needs the package pg, and it is not installed: npm install pg@8');
  }
  const pool = new pg.Pool({
    connectionString,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'tillgate',
  });
  const options = { pool, table, sentinel, createTable: true, maxTokenAgeMs, schedule, logger };
  const source = postgresGenerations(options);
  return {
    ...source,
    async close() {
      await source.close();
      if (!pool.ending) await pool.end();
    },
  };
}

/** An index row must fit into a third of a page, which leaves 2,692 bytes for a text. */
const MAX_CLIENT_ID_BYTES = 2_600;

function requireStorable(clientId: string): void {
  if (clientId === HORIZON) throw new TypeError('publish(): this client id is reserved for the horizon of the table');
  if (Buffer.byteLength(clientId) <= MAX_CLIENT_ID_BYTES) return;
  throw new TypeError(`publish(): client id must have at most ${MAX_CLIENT_ID_BYTES} bytes to be stored in PostgreSQL`);
}

/** How a table is watched. */
interface PostgresWatchOptions extends PostgresReaderOptions {
  /** Pause between two checks of the connection, in ms. */
  readonly heartbeatMs: number;
  readonly schedule: Schedule;
}

/** Makes the `watch` of a table: LISTEN on a separate connection, which is destroyed afterwards. */
function postgresWatch(options: PostgresWatchOptions): NonNullable<GenerationSource['watch']> {
  const { sessions, table, heartbeatMs, schedule, prepare } = options;

  return async function watch(wake, lost) {
    await prepare();
    const session = await sessions.open();
    let pause: Timer | undefined;
    let stopped = false;

    function stop(): void {
      stopped = true;
      pause?.cancel();
      session.destroy();
    }

    function end(error: unknown): void {
      if (stopped) return;
      stop();
      lost?.(error);
    }

    /** A connection can be dead without an error: only a response proves that it is not. */
    function beat(): void {
      if (stopped) return;
      pause = schedule(() => void requireListening(session, table).then(beat, end), heartbeatMs);
    }

    try {
      session.onNotification((channel) => {
        if (!stopped && channel === table.channel) wake();
      });
      await session.query(`LISTEN "${table.channel}"`);
      await requireListening(session, table);
    } catch (error) {
      stop();
      throw error;
    }
    session.onLost(end);
    beat();
    return stop;
  };
}

/** A pooler with statement pooling accepts LISTEN without effect. */
async function requireListening(session: PostgresSession, { channel }: PostgresTable): Promise<void> {
  const rows = await session.query('SELECT FROM pg_listening_channels() AS heard WHERE heard = $1', [channel]);
  if (rows.length > 0) return;
  throw new SourceError('PostgreSQL: LISTEN has no effect; connect without the pooler, or with session pooling');
}
