import type { Schedule } from '../../core/clock';
import { withTimeLimit } from '../../core/clock';
import { ownValue } from '../../core/objects';
import { SourceError, describeFailure, noResponse } from '../log';

/** Result of a query. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
}

/** The part of a pooled connection that is used; `PoolClient` of pg 8 fits. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'notification', listener: () => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
  removeListener(event: 'notification', listener: () => void): unknown;
  /** Gives the connection back; `true` destroys it. */
  release(destroy?: boolean): void;
}

/** The part of a connection pool that is used; `Pool` of pg 8 fits. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  readonly options?: { readonly max?: number | undefined; readonly connectionTimeoutMillis?: number | undefined };
}

/** Runs one statement, bounded in time, and returns its rows. @throws SourceError */
export type PostgresQuery = (text: string, values?: unknown[]) => Promise<readonly unknown[]>;

/** One connection, checked out. */
export interface PostgresSession {
  readonly query: PostgresQuery;
  /** Returns the connection to the pool. */
  release(): void;
  /** Ends the connection: one whose state is unknown must not be used again. */
  destroy(): void;
}

const CLOSED = 'PostgreSQL: the source is closed';

/** Uses connections of the caller's pool; every failure is a `SourceError`. */
export class PostgresSessions {
  readonly #pool: PostgresPool;
  readonly #timeoutMs: number;
  readonly #schedule: Schedule;
  readonly #open = new Set<PostgresSession>();
  #closed = false;

  /** @param timeoutMs - longest time for one statement, and for a connection */
  constructor(pool: PostgresPool, timeoutMs: number, schedule: Schedule) {
    this.#pool = pool;
    this.#timeoutMs = timeoutMs;
    this.#schedule = schedule;
  }

  async #connect(): Promise<PostgresClient> {
    const connecting = (async () => this.#pool.connect())();
    try {
      return await this.#limited(connecting);
    } catch (error) {
      // A connection that opens after the time limit goes back to the pool.
      connecting.then((client) => client.release()).catch(() => undefined);
      throw postgresFailure(error);
    }
  }

  #limited<Value>(work: Promise<Value>): Promise<Value> {
    return withTimeLimit(work, this.#timeoutMs, this.#schedule, noResponse);
  }

  /** Checks out one connection. `wake` is called for every notification, and when the connection is lost or ended. */
  async open(wake: () => void = () => undefined): Promise<PostgresSession> {
    if (this.#closed) throw new SourceError(CLOSED);
    const client = await this.#connect();
    let failure: SourceError | undefined;
    // Not removed when the connection is destroyed: an 'error' without a listener would end the process.
    const onError = (error: Error): void => {
      failure = postgresFailure(error);
      session.destroy();
    };
    client.on('error', onError);
    client.on('notification', wake);

    const session: PostgresSession = {
      query: async (text, values) => {
        if (!this.#open.has(session)) throw failure ?? new SourceError(CLOSED);
        try {
          return (await this.#limited(client.query(text, values))).rows;
        } catch (error) {
          throw failure ?? postgresFailure(error);
        }
      },
      release: () => {
        if (!this.#open.delete(session)) return;
        client.removeListener('error', onError);
        client.removeListener('notification', wake);
        client.release();
      },
      destroy: () => {
        if (!this.#open.delete(session)) return;
        client.release(true);
        wake();
      },
    };
    this.#open.add(session);
    if (this.#closed) session.destroy();
    return session;
  }

  /** Runs `work` on one connection, which is not used again after a failure. */
  async use<Value>(work: (query: PostgresQuery) => Promise<Value>): Promise<Value> {
    const session = await this.open();
    try {
      const value = await work(session.query);
      session.release();
      return value;
    } catch (error) {
      session.destroy();
      throw error;
    }
  }

  /** Ends every open connection. */
  close(): void {
    this.#closed = true;
    for (const session of [...this.#open]) session.destroy();
  }
}

/** What an operator can do, by SQLSTATE (PostgreSQL manual, appendix A). */
const ADVICE: Readonly<Record<string, string>> = {
  '28000': 'the user or this address is not allowed (pg_hba.conf)',
  '28P01': 'user name or password is wrong',
  '3D000': 'the database does not exist',
  '3F000': 'the schema of the table does not exist',
  '42501':
    'the user lacks a privilege: SELECT to read, INSERT to append; SELECT, INSERT, UPDATE and DELETE, and USAGE of the ' +
    "table's sequence, to keep the mark; CREATE to create the table",
  '42P01': 'the table does not exist; create it with createTable: true or with the SQL of postgresSchema()',
  '25006': 'this server is read-only; use the URL of the primary',
  '57P01': 'the server has ended the connection',
  '53300': 'the server has no connection left',
};

function postgresFailure(error: unknown): SourceError {
  const code = String(ownValue(error, 'code'));
  const advice = Object.hasOwn(ADVICE, code) ? ADVICE[code] : undefined;
  const detail = advice === undefined ? describeFailure(error) : `${advice} (${code})`;
  return new SourceError(`PostgreSQL: ${detail}`, { cause: error });
}
