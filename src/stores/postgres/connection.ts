import { describeFailure, noResponse, SourceError, type Schedule } from 'tillgate/generations';
import { ownValue, withTimeLimit } from 'tillgate/internal';

/** Result of a query. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
}

/** The part of a pooled connection that is used; `PoolClient` of pg 8 fits. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'notification', listener: () => void): unknown;
  /** Gives the connection back; `true` destroys it. */
  release(destroy?: boolean): void;
}

/** The part of a connection pool that is used; `Pool` of pg 8 fits. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  readonly options?: { readonly max?: number | undefined };
}

/** Runs one statement, bounded in time, and returns its rows. @throws SourceError */
export type PostgresQuery = (text: string, values?: unknown[]) => Promise<readonly unknown[]>;

interface ConnectionOptions {
  readonly pool: PostgresPool;
  /** Longest time for one statement, and for a connection, in ms. */
  readonly timeoutMs: number;
  readonly schedule: Schedule;
  readonly setUp?: (query: PostgresQuery) => Promise<void>;
  /** Called for every notification, and when the connection is lost or ended. */
  readonly wake?: () => void;
}

/** What the server may take of the time limit, so that it has ended a statement before the caller gives up on it. */
const SERVER_SHARE = 0.9;
const SET_LIMITS = "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $1, false)";
const CLOSED = 'PostgreSQL: the source is closed';

/**
 * Keeps one connection of the caller's pool, opened on its first use and after a failure. It has settings of its own, so it is
 * destroyed at the end and not given back. Every failure is a `SourceError`.
 */
export class PostgresConnection {
  readonly #options: ConnectionOptions;
  #opened: Promise<PostgresQuery> | undefined;
  #session: Session | undefined;
  #isClosed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Runs `work` on it; after a failure it is not used again. */
  async use<Value>(work: (query: PostgresQuery) => Promise<Value>): Promise<Value> {
    if (this.#isClosed) throw new SourceError(CLOSED);
    try {
      return await work(await (this.#opened ??= this.#open()));
    } catch (error) {
      this.drop();
      throw error;
    }
  }

  /** Ends it; the next use opens another one. */
  drop(): void {
    this.#opened = undefined;
    this.#session?.end();
  }

  close(): void {
    this.#isClosed = true;
    this.drop();
  }

  async #open(): Promise<PostgresQuery> {
    const { timeoutMs, setUp } = this.#options;
    const client = await this.#connect();
    const session = new Session(client, this.#options, () => (this.#opened = undefined));
    this.#session = session;
    if (this.#isClosed) session.end();
    const query: PostgresQuery = (text, values) => session.query(text, values);
    await query(SET_LIMITS, [String(Math.ceil(timeoutMs * SERVER_SHARE))]);
    await setUp?.(query);
    return query;
  }

  async #connect(): Promise<PostgresClient> {
    const { pool, timeoutMs, schedule } = this.#options;
    const connecting = (async () => pool.connect())();
    try {
      return await withTimeLimit(connecting, timeoutMs, schedule, noResponse);
    } catch (error) {
      // A connection that opens after the time limit goes back to the pool.
      connecting.then((client) => client.release()).catch(() => undefined);
      throw postgresFailure(error);
    }
  }
}

/** One client of the pool, from when it is connected until it is destroyed. */
class Session {
  readonly #client: PostgresClient;
  readonly #options: ConnectionOptions;
  readonly #onEnd: () => void;
  #isOpen = true;
  /** Why it was lost. */
  #failure: SourceError | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(client: PostgresClient, options: ConnectionOptions, onEnd: () => void) {
    this.#client = client;
    this.#options = options;
    this.#onEnd = onEnd;
    // Not removed when the connection is destroyed: an 'error' without a listener would end the process.
    client.on('error', (error) => this.end(postgresFailure(error)));
    client.on('notification', () => options.wake?.());
  }

  async query(text: string, values?: unknown[]): Promise<readonly unknown[]> {
    const { timeoutMs, schedule } = this.#options;
    if (!this.#isOpen) throw this.#failure ?? new SourceError(CLOSED);
    // One after the other: pg warns of a query that begins before the one before it has ended.
    const asked = this.#last.then(() => this.#client.query(text, values));
    this.#last = asked.catch(() => undefined);
    try {
      return (await withTimeLimit(asked, timeoutMs, schedule, noResponse)).rows;
    } catch (error) {
      throw this.#failure ?? postgresFailure(error);
    }
  }

  end(failure = this.#failure): void {
    this.#failure = failure;
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#onEnd();
    this.#client.release(true);
    this.#options.wake?.();
  }
}

/** What to do where there is no table of generations. */
export const TABLE_REMEDY = 'create one with createTable: true or with the SQL of postgresSchema()';

/** What an operator can do, by SQLSTATE (PostgreSQL manual, appendix A). */
const ADVICE_BY_SQLSTATE: Readonly<Record<string, string>> = {
  '28000': 'the user or this address is not allowed (pg_hba.conf)',
  '28P01': 'user name or password is wrong',
  '3D000': 'the database does not exist',
  '3F000': 'the schema of the table does not exist',
  '42501':
    'the user lacks a privilege: SELECT to read, INSERT to append; SELECT, INSERT, UPDATE and DELETE, and UPDATE of the ' +
    "table's sequence, to keep the mark; CREATE to create the table",
  '42P01': `the table does not exist; ${TABLE_REMEDY}`,
  '25006': 'this server is read-only; use the URL of the primary',
  '55P03': 'another transaction holds a lock for too long',
  '57014': 'the statement took too long',
  '57P01': 'the server has ended the connection',
  '53300': 'the server has no connection left',
};

function postgresFailure(error: unknown): SourceError {
  const code = String(ownValue(error, 'code'));
  const advice = Object.hasOwn(ADVICE_BY_SQLSTATE, code) ? ADVICE_BY_SQLSTATE[code] : undefined;
  const detail = advice === undefined ? describeFailure(error) : `${advice} (${code})`;
  return new SourceError(`PostgreSQL: ${detail}`, { cause: error });
}
