import { withTimeLimit } from '../../core/clock';
import type { Schedule } from '../../core/clock';
import { SourceError, describeFailure, noResponse } from '../source-error';
import type { RedisConnection } from './connection';

/** Sends commands that are bounded in time; every failure is a `SourceError`. */
export interface RedisCommands {
  /**
   * Runs a command on the key of the log.
   *
   * @param waitMs - how long the server may block, in ms
   * @throws SourceError
   */
  run(args: readonly string[], waitMs?: number): Promise<unknown>;
  close(): void;
}

/** @param limits - `timeoutMs`: longest time for one command, in ms */
export function redisCommands(
  opened: RedisConnection,
  { key, timeoutMs, schedule }: { readonly key: string; readonly timeoutMs: number; readonly schedule: Schedule },
): RedisCommands {
  /** The last failure that the client has reported. */
  let cause: unknown;
  let connection = listen(opened);
  let closed = false;

  function listen(to: RedisConnection): RedisConnection {
    to.onError((error) => (cause = error));
    return to;
  }

  return {
    async run(args, waitMs = 0) {
      if (closed) throw new SourceError('Redis: closed');
      const used = connection;
      try {
        const sent = (async () => used.send(args, key))();
        const reply = await withTimeLimit(sent, waitMs + timeoutMs, schedule, () => noResponse(timeoutMs));
        cause = undefined;
        return reply;
      } catch (error) {
        if (closed) throw new SourceError('Redis: closed', { cause: error });
        // The commands that were pending when another one timed out end with the connection.
        const isSilent = error instanceof SourceError || used !== connection;
        const failure = redisFailure(args[0], isSilent ? noResponse(timeoutMs) : error, cause);
        // It can be dead without an error: packets are lost, and TCP may take a quarter of an hour to notice.
        if (isSilent && used === connection) {
          connection = listen(used.duplicate());
          used.close();
        }
        throw failure;
      }
    },
    close() {
      if (!closed) connection.close();
      closed = true;
    },
  };
}

/** What an operator can do, by the first word of the error reply. */
const ADVICE: Readonly<Record<string, string>> = {
  ERR: 'the command was refused; Redis 6.2 or later is needed',
  CLUSTERDOWN: 'the cluster does not serve this key now',
  LOADING: 'the server is loading its data',
  MASTERDOWN: 'the server is a replica without its primary',
  MISCONF: 'the server cannot write to its disk and refuses changes',
  MOVED: 'this is one server of a cluster; give redisGenerations() a cluster client',
  NOAUTH: 'the URL or the client needs a password',
  NOPERM:
    'the user lacks a permission: XREAD and XREVRANGE to read; XADD to append; to keep the mark also EVAL, EXISTS, XRANGE, ' +
    'XDEL, XTRIM, TIME, XINFO|GROUPS, XGROUP|CREATE and XGROUP|SETID',
  NOREPLICAS: 'the server has too few replicas and refuses changes',
  OOM: 'the server has no memory left',
  READONLY: 'this server is a replica; use the URL of the primary',
  UNBLOCKED: 'the server has become a replica',
  WRONGPASS: 'user name or password is wrong',
  WRONGTYPE:
    'the key does not hold a stream; a sorted set is the format of an earlier version: delete the key, and its publisher ' +
    'writes it again, or use another key',
};

/** Describes the failure of a command; `cause` is the error of its connection, if known. */
function redisFailure(command: string | undefined, error: unknown, cause?: unknown): SourceError {
  // Redis 6.2 wraps the error of a command in a script: `ERR Error running script [...]: -READONLY You can't write`.
  const words = error instanceof Error ? /^(?:ERR .* -)?([A-Z]{3,20})\b/.exec(error.message) : undefined;
  const word = words?.[1] ?? '';
  const advice = Object.hasOwn(ADVICE, word) ? ADVICE[word] : undefined;
  const because = cause === undefined ? '' : `; the connection failed: ${describeFailure(cause)}`;
  const detail = advice === undefined ? `${describeFailure(error)}${because}` : `${advice} (${word})`;
  return new SourceError(`Redis: ${command}: ${detail}`, { cause: error });
}
