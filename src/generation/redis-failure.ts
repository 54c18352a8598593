import { SourceError, describeFailure } from './source-error';

/** What an operator can mend, by the first word of the answer. */
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

/** The failure of a command in our own words; `cause` is what the connection died of, where that is known. */
export function redisFailure(command: string, error: unknown, cause?: unknown): SourceError {
  const word = error instanceof Error ? (/^([A-Z]{3,20})\b/.exec(error.message)?.[1] ?? '') : '';
  const advice = Object.hasOwn(ADVICE, word) ? ADVICE[word] : undefined;
  const detail = advice === undefined ? describeFailure(error) : `${advice} (${word})`;
  const because = cause === undefined ? '' : `; the connection failed: ${describeFailure(cause)}`;
  return new SourceError(`Redis: ${command}: ${detail}${because}`, { cause: error });
}
