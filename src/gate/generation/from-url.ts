import type * as Http from './http/log';
import type { GenerationSource } from './log';
import type * as Postgres from './postgres/log';
import type * as Redis from './redis/log';
import type { SourceDependencies } from './source-url';

/* eslint-disable @typescript-eslint/no-require-imports -- each source is loaded on first use, to keep the import of the package fast */
/** One row per source: the schemes of its URLs, and what opens one. */
const SOURCES = [
  [/^https?:/i, () => (require('./http/log') as typeof Http).httpFromUrl],
  [/^rediss?:/i, () => (require('./redis/log') as typeof Redis).redisFromUrl],
  [/^postgres(ql)?:/i, () => (require('./postgres/log') as typeof Postgres).postgresFromUrl],
] as const;
/* eslint-enable @typescript-eslint/no-require-imports */

/**
 * Makes the source for a URL. The caller closes it.
 *
 * @throws TypeError when the scheme is unknown or the URL is wrong; the message does not repeat the URL, which may hold
 * a password.
 */
export function generationsFromUrl(url: string, dependencies: SourceDependencies = {}): GenerationSource {
  const source = SOURCES.find(([schemes]) => schemes.test(url));
  if (source) return source[1]()(url, { __proto__: null, ...dependencies } as SourceDependencies);
  const scheme = /^([a-z][a-z0-9+.-]{0,30}:)/i.exec(url)?.[1]?.toLowerCase();
  const got = scheme === undefined ? 'a URL without a scheme' : `"${scheme}"`;
  throw new TypeError(`generations: expected an http(s):, redis(s): or postgres: URL, got ${got}`);
}
