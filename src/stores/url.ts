import type { GenerationLog } from 'tillgate/generations';
import type * as Postgres from './postgres/log';
import type * as Redis from './redis/log';
import type { StoreDependencies } from './store-url';

/**
 * Makes the log of a `redis:`, `rediss:` or `postgres:` URL, and loads the code of its engine at first use. The caller closes it.
 *
 * @throws TypeError when the URL is wrong or the client of the engine is not installed; the message does not repeat the URL
 */
export function sourceFromUrl(url: string, dependencies: StoreDependencies = {}): GenerationLog {
  /* eslint-disable @typescript-eslint/no-require-imports -- an import would load both engines */
  if (/^rediss?:/i.test(url)) return (require('./redis/log') as typeof Redis).redisFromUrl(url, dependencies);
  if (/^postgres(ql)?:/i.test(url))
    return (require('./postgres/log') as typeof Postgres).postgresFromUrl(url, dependencies);
  /* eslint-enable @typescript-eslint/no-require-imports */
  throw new TypeError('generations: expected a redis(s): or postgres: URL');
}

export type { StoreDependencies } from './store-url';
