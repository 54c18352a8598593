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
  /** Ends the connection: one whose state is unknown must not be used again. */
  destroy(): void;
}

const CLOSED = 'PostgreSQL: the source is closed';

/** What the server may take of the time limit, so that it has ended a statement before the caller gives up on it. */
const SERVER_SHARE = 0.9;
const SET_LIMITS = "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $1, false)";

/**
 * Uses connections of the caller's pool: one for each reader, and one to append. They have settings of their own, so they are
 * destroyed at the end and not given back. Every failure is a `SourceError`.
 */
export class PostgresSessions {
  readonly #pool: PostgresPool;
  readonly #timeoutMs: number;
  readonly #schedule: Schedule;
  readonly #open = new Set<PostgresSession>();
  #writer: PostgresSession | undefined;
  #lastUse: Promise<unknown> = Promise.resolve();
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
      destroy: () => {
        if (!this.#open.delete(session)) return;
        client.release(true);
        wake();
      },
    };
    this.#open.add(session);
    if (this.#closed) session.destroy();
    try {
      await session.query(SET_LIMITS, [String(Math.ceil(this.#timeoutMs * SERVER_SHARE))]);
    } catch (error) {
      session.destroy();
      throw error;
    }
    return session;
  }

  /** Runs `work` on the connection that appends, after the work before it. After a failure it is not used again. */
  use<Value>(work: (query: PostgresQuery) => Promise<Value>): Promise<Value> {
    const before = this.#lastUse;
    const turn = this.#limited(before).catch((error: unknown) => {
      throw postgresFailure(error);
    });
    const using = turn.then(async () => {
      if (!this.#writer || !this.#open.has(this.#writer)) this.#writer = await this.open();
      const session = this.#writer;
      try {
        return await work(session.query);
      } catch (error) {
        session.destroy();
        throw error;
      }
    });
    this.#lastUse = Promise.allSettled([before, using]);
    return using;
  }

  /** Ends every open connection. */
  close(): void {
    this.#closed = true;
    for (const session of [...this.#open]) session.destroy();
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
