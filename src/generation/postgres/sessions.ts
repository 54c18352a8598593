import type { Schedule } from '../../core/clock';
import { withTimeLimit } from '../../core/clock';
import { ownValue } from '../../core/objects';
import { SourceError, describeFailure, noResponse } from '../source-error';

/** Result of a query. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
}

/** The part of a pooled connection that is used; `PoolClient` of pg 8 fits. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'notification', listener: (message: { readonly channel: string }) => void): unknown;
  removeListener(event: 'error', listener: (error: Error) => void): unknown;
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
  /** Calls `listener` once when the connection is lost, if it is still checked out then. */
  onLost(listener: (error: SourceError) => void): void;
  onNotification(listener: (channel: string) => void): void;
  /** Returns the connection to the pool. */
  release(): void;
  /** Ends the connection: one whose state is unknown must not be used again. */
  destroy(): void;
  /** Ends the connection and calls the `onLost` listener. */
  lose(error: unknown): void;
}

/** How connections are used. */
export interface SessionsOptions {
  readonly pool: PostgresPool;
  /** Longest time for one statement, and for a connection, in ms. */
  readonly timeoutMs: number;
  readonly schedule: Schedule;
}

/** Uses connections of the caller's pool, bounded in time; every failure is a `SourceError`. */
export class PostgresSessions {
  readonly #options: SessionsOptions;
  readonly #open = new Set<PostgresSession>();
  #closed = false;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** Checks out one connection. @throws SourceError */
  async open(): Promise<PostgresSession> {
    if (this.#closed) throw new SourceError('PostgreSQL: the source is closed');
    const client = await this.#connect();
    const session = this.#sessionOf(client);
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
    for (const session of [...this.#open]) session.lose(new SourceError('the source is closed'));
  }

  async #connect(): Promise<PostgresClient> {
    const { pool, timeoutMs, schedule } = this.#options;
    const connecting = (async () => pool.connect())();
    try {
      return await withTimeLimit(connecting, timeoutMs, schedule, noResponse);
    } catch (error) {
      // A connection that opens after the time limit goes back to the pool.
      connecting.then(
        (client) => client.release(),
        () => undefined,
      );
      throw postgresFailure(error);
    }
  }

  #sessionOf(client: PostgresClient): PostgresSession {
    const { timeoutMs, schedule } = this.#options;
    const open = this.#open;
    let lost: ((error: SourceError) => void) | undefined;
    // Not removed when the connection is destroyed: an 'error' without a listener would end the process.
    const onError = (error: Error): void => session.lose(error);

    const session: PostgresSession = {
      async query(text, values) {
        try {
          return (await withTimeLimit(client.query(text, values), timeoutMs, schedule, noResponse)).rows;
        } catch (error) {
          throw postgresFailure(error);
        }
      },
      onLost: (listener) => void (lost = listener),
      onNotification: (listener) => void client.on('notification', ({ channel }) => listener(channel)),
      release() {
        if (!open.delete(session)) return;
        client.removeListener('error', onError);
        client.release();
      },
      destroy() {
        if (open.delete(session)) client.release(true);
      },
      lose(error) {
        if (!open.has(session)) return;
        session.destroy();
        lost?.(postgresFailure(error));
      },
    };
    client.on('error', onError);
    return session;
  }
}

/** What an operator can do, by SQLSTATE (PostgreSQL manual, appendix A). */
const ADVICE: Readonly<Record<string, string>> = {
  '28000': 'the user or this address is not allowed (pg_hba.conf)',
  '28P01': 'user name or password is wrong',
  '3D000': 'the database does not exist',
  '3F000': 'the schema of the table does not exist',
  '42501':
    'the user lacks a privilege: SELECT to read, INSERT and UPDATE to publish, ' +
    'DELETE to remove old floors, CREATE to create the table',
  '42P01': 'the table does not exist; create it with createTable: true or with the SQL of postgresSchema()',
  '25006': 'this server is read-only; use the URL of the primary',
  '57P01': 'the server has ended the connection',
  '53300': 'the server has no connection left',
};

/** Describes the failure of a statement. */
export function postgresFailure(error: unknown): SourceError {
  const code = String(ownValue(error, 'code'));
  const advice = Object.hasOwn(ADVICE, code) ? ADVICE[code] : undefined;
  const detail = advice === undefined ? describeFailure(error) : `${advice} (${code})`;
  return new SourceError(`PostgreSQL: ${detail}`, { cause: error });
}

/** Whether a statement failed because of its data (SQLSTATE classes 22, 23 and 54), such as a text that the encoding lacks. */
export function isRefusedRow(error: unknown): boolean {
  return /^(22|23|54)/.test(String(ownValue(ownValue(error, 'cause'), 'code')));
}
