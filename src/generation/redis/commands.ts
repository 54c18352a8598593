import type { Schedule } from '../../core/clock';
import { withTimeLimit } from '../../core/clock';
import type { RedisConnection } from './connection';
import { SourceError, describeFailure, noResponse } from '../source-error';

/** How commands reach Redis. */
export interface RedisCommandsOptions {
  readonly connection: RedisConnection;
  /** Whether `close()` closes the connection; `false` for the caller's own client. */
  readonly owned: boolean;
  /** Longest time for one command, in ms. */
  readonly timeoutMs: number;
  readonly schedule: Schedule;
  /** Called when the connection breaks, also if the client reconnects by itself. */
  readonly onBreak: (error: SourceError) => void;
}

/** Sends the commands of one source, bounded in time; every failure is a `SourceError`. */
export class RedisCommands {
  readonly #options: RedisCommandsOptions;
  #connection: RedisConnection;
  #owned: boolean;
  #stopListening: () => void = () => undefined;
  #closed = false;
  /** The last connection error that the client has reported. */
  #cause: unknown;
  /** Breaks so far: a read of several commands is complete only if none came in between. */
  breaks = 0;

  constructor(options: RedisCommandsOptions) {
    this.#options = options;
    this.#connection = options.connection;
    this.#owned = options.owned;
    this.#listen();
  }

  /** @throws SourceError */
  async run(command: string, ...args: readonly string[]): Promise<unknown> {
    const { timeoutMs, schedule } = this.#options;
    const connection = this.#connection;
    try {
      if (this.#closed) throw new SourceError('closed');
      const sent = (async () => connection.send([command, ...args]))();
      const reply = await withTimeLimit(sent, timeoutMs, schedule, noResponse);
      this.#cause = undefined;
      return reply;
    } catch (error) {
      if (!(error instanceof SourceError)) throw redisFailure(command, error);
      const failure = redisFailure(command, error, this.#cause);
      this.#replaceSilent(connection);
      throw failure;
    }
  }

  /** Another connection to the same server; the caller closes it. */
  duplicate(): RedisConnection {
    if (this.#closed) throw new SourceError('Redis: closed');
    return this.#connection.duplicate();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopListening();
    if (this.#owned) this.#connection.close();
  }

  /**
   * A connection can be dead without an error: packets are lost, and TCP may take a quarter of an hour to notice. So a
   * connection on which a command timed out is replaced.
   */
  #replaceSilent(silent: RedisConnection): void {
    if (this.#closed || silent !== this.#connection) return;
    this.#stopListening();
    this.#connection = silent.duplicate();
    if (this.#owned) silent.close();
    this.#owned = true;
    this.#listen();
    this.#broken(new SourceError('no response'));
  }

  #listen(): void {
    this.#stopListening = this.#connection.onBreak((error) => this.#broken(error));
  }

  #broken(error: unknown): void {
    this.breaks++;
    // Some events carry no error.
    const known = typeof error === 'object' && error !== null;
    if (known && !(error instanceof SourceError)) this.#cause = error;
    this.#options.onBreak(known ? redisFailure('the connection broke', error) : new SourceError('Redis: disconnected'));
  }
}

/** What an operator can do, by the first word of the error reply. */
const ADVICE: Readonly<Record<string, string>> = {
  ERR: 'the command was refused; Redis 6.2 or later is needed',
  LOADING: 'the server is loading its data',
  MASTERDOWN: 'the server is a replica without its primary',
  MISCONF: 'the server cannot write to its disk and refuses changes',
  MOVED: 'this is a cluster; use a single primary',
  NOAUTH: 'the URL or the client needs a password',
  NOPERM:
    'the user lacks a permission: ZSCAN, ZRANGE, ZCOUNT, ZMSCORE, PING and SUBSCRIBE to read, ZADD and PUBLISH to publish, ' +
    'with ZRANGE, ZMSCORE and ZREMRANGEBYSCORE to remove old floors',
  OOM: 'the server has no memory left',
  READONLY: 'this server is a replica; use the URL of the primary',
  WRONGPASS: 'user name or password is wrong',
  WRONGTYPE: 'the key holds something other than a sorted set',
};

/** Describes the failure of a command; `cause` is the error of its connection, if known. */
export function redisFailure(command: string, error: unknown, cause?: unknown): SourceError {
  const word = String(error instanceof Error && /^([A-Z]{3,20})\b/.exec(error.message)?.[1]);
  const advice = Object.hasOwn(ADVICE, word) ? ADVICE[word] : undefined;
  const detail = advice === undefined ? describeFailure(error) : `${advice} (${word})`;
  const because = cause === undefined ? '' : `; the connection failed: ${describeFailure(cause)}`;
  return new SourceError(`Redis: ${command}: ${detail}${because}`, { cause: error });
}
