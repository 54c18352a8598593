import type { Schedule } from '../../core/clock';
import { withTimeLimit } from '../../core/clock';
import type { RedisConnection } from './connection';
import { SourceError, describeFailure, noResponse } from '../source-error';

/** How commands reach a server. */
export interface RedisCommandsOptions {
  readonly connection: RedisConnection;
  /** Whether the connection is closed with this; somebody else's is left alone. */
  readonly owned: boolean;
  /** Longest time for one command, in ms. */
  readonly timeoutMs: number;
  readonly schedule: Schedule;
  /** Called when the connection breaks, whoever mends it. */
  readonly onBreak: (error: SourceError) => void;
}

/** Sends the commands of one source, bounded in time; every failure comes out as a `SourceError`. */
export class RedisCommands {
  readonly #options: RedisCommandsOptions;
  #connection: RedisConnection;
  #owned: boolean;
  #stopListening: () => void = () => undefined;
  #closed = false;
  /** Why there is no connection, as far as the client has said. */
  #cause: unknown;
  /** Breaks so far: what spans several commands is whole only when none came in between. */
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
      const answer = (async () => connection.send([command, ...args]))();
      const reply = await withTimeLimit(answer, timeoutMs, schedule, noResponse);
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
   * A connection can be dead without any sign: its packets are lost, and TCP may take a quarter of an hour to notice. So
   * one that let a command wait too long is given up for a new one, whatever its client believes.
   */
  #replaceSilent(silent: RedisConnection): void {
    if (this.#closed || silent !== this.#connection) return;
    this.#stopListening();
    this.#connection = silent.duplicate();
    if (this.#owned) silent.close();
    this.#owned = true;
    this.#listen();
    this.#broken(new SourceError('no answer'));
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

/** What an operator can mend, by the first word of the response. */
const ADVICE: Readonly<Record<string, string>> = {
  ERR: 'the command was refused; Redis 6.2 or later is needed',
  LOADING: 'the server is loading its data',
  MASTERDOWN: 'the server is a replica without its primary',
  MISCONF: 'the server cannot write to its disk and refuses changes',
  MOVED: 'this is a cluster; use a single primary',
  NOAUTH: 'the address or the client needs a password',
  NOPERM: 'the user lacks a permission: ZSCAN, ZMSCORE, ZCARD, PING and SUBSCRIBE to read, ZADD and PUBLISH to publish',
  OOM: 'the server has no memory left',
  READONLY: 'this server is a replica; use the address of the primary',
  WRONGPASS: 'user name or password is wrong',
  WRONGTYPE: 'the key is in use for something else than a sorted set',
};

/** The failure of a command, in our own words; `cause` is what the connection died of, where that is known. */
export function redisFailure(command: string, error: unknown, cause?: unknown): SourceError {
  const word = error instanceof Error ? (/^([A-Z]{3,20})\b/.exec(error.message)?.[1] ?? '') : '';
  const advice = Object.hasOwn(ADVICE, word) ? ADVICE[word] : undefined;
  const detail = advice === undefined ? describeFailure(error) : `${advice} (${word})`;
  const because = cause === undefined ? '' : `; the connection failed: ${describeFailure(cause)}`;
  return new SourceError(`Redis: ${command}: ${detail}${because}`, { cause: error });
}
