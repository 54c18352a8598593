/* eslint-disable @typescript-eslint/no-require-imports -- a source is loaded when an address asks for it: an import must be quick */
import type { Clock, Schedule } from '../core/clock';
import type { Logger } from '../core/logger';
import type { Fetch } from '../token/keys/fetch-json';
import type * as httpSource from './http';
import type * as postgresSource from './postgres-url';
import type * as redisSource from './redis-url';
import type { GenerationSource } from './source';

/** What a source that is made from an address may need. */
export interface SourceDependencies {
  /** Sent with every request to an `http(s):` source. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly fetch?: Fetch | undefined;
  readonly clock?: Clock | undefined;
  readonly schedule?: Schedule | undefined;
  readonly logger?: Logger | undefined;
}

const load = {
  http: () => require('./http') as typeof httpSource,
  postgres: () => require('./postgres-url') as typeof postgresSource,
  redis: () => require('./redis-url') as typeof redisSource,
};

type SourceFactory = (url: string, dependencies: SourceDependencies) => GenerationSource;

/** One row per scheme. */
const SCHEMES = new Map<string, SourceFactory>([
  ['http', fromHttp],
  ['https', fromHttp],
  ['redis', fromRedis],
  ['rediss', fromRedis],
  ['postgres', fromPostgres],
  ['postgresql', fromPostgres],
]);

/**
 * Makes the source that an address stands for. Whoever calls this closes it.
 *
 * @throws TypeError when the scheme is unknown or the address is wrong; the message does not repeat the address, which
 * may hold a password.
 */
export function generationsFromUrl(url: string, dependencies: SourceDependencies = {}): GenerationSource {
  const scheme = schemeOf(url);
  const make = SCHEMES.get(scheme);
  if (make) return make(url, dependencies);
  const got = scheme === '' ? 'an address without a scheme' : `"${scheme}:"`;
  throw new TypeError(`generations: expected an http(s):, redis(s): or postgres: address, got ${got}`);
}

function schemeOf(url: string): string {
  return /^([a-z][a-z0-9+.-]{0,30}):/i.exec(url)?.[1]?.toLowerCase() ?? '';
}

/** Named one by one: whoever calls may have more at hand than this source takes. */
function fromHttp(url: string, { headers, fetch, clock, schedule, logger }: SourceDependencies): GenerationSource {
  return load.http().httpGenerations({ url, headers, fetch, clock, schedule, logger });
}

function fromPostgres(url: string, { schedule, logger }: SourceDependencies): GenerationSource {
  return load.postgres().postgresFromUrl(url, { schedule, logger });
}

function fromRedis(url: string, { clock, schedule, logger }: SourceDependencies): GenerationSource {
  return load.redis().redisFromUrl(url, { clock, schedule, logger });
}
