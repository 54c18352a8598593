import type * as Pg from 'pg';
import type { Schedule } from '../core/clock';
import type { Logger } from '../core/logger';
import { loadIfInstalled, loadPackage } from './optional-package';
import type { Load } from './optional-package';
import { postgresGenerations } from './postgres';
import { readSentinelParameter } from './sentinel-parameter';
import type { PublishingSource } from './source';

/** What a source that is made from an address may be given. */
export interface PostgresUrlDependencies {
  readonly schedule?: Schedule | undefined;
  readonly logger?: Logger | undefined;
  /** Loads a package by its name. Default: Node's `require`. */
  readonly load?: Load | undefined;
}

/** One listens, one reads, one publishes, and one to spare. */
const CONNECTIONS = 4;
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 10_000;

/**
 * Makes the source for a `postgres://` address, as libpq and pg write it: `sslmode` in its query decides about TLS, and
 * `table` names the table, which is created if it does not exist.
 *
 * @throws TypeError when the address is wrong or pg is not installed; the message does not repeat the address.
 */
export function postgresFromUrl(url: string, dependencies: PostgresUrlDependencies): PublishingSource {
  const { schedule, logger, load = loadPackage } = dependencies;
  const { connectionString, table, sentinel } = readAddress(url);
  const pg = loadIfInstalled(load, 'pg') as typeof Pg | undefined;
  if (!pg) {
    throw new TypeError(
      'generations: a postgres: address needs the package pg, and it is not installed: npm install pg@8',
    );
  }
  const pool = new pg.Pool({
    connectionString,
    max: CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: 'tillgate',
  });
  const source = postgresGenerations({ pool, table, sentinel, createTable: true, schedule, logger });
  return {
    ...source,
    async close() {
      await source.close();
      if (!pool.ending) await pool.end();
    },
  };
}

function readAddress(url: string): { connectionString: string; table: string | undefined; sentinel: boolean } {
  // Node's error repeats its input, and with it the password.
  if (!URL.canParse(url)) throw new TypeError('generations: the postgres: URL is not valid');
  const address = new URL(url);
  const table = address.searchParams.get('table') ?? undefined;
  const sentinel = readSentinelParameter(address.searchParams);
  if (table === undefined && !address.searchParams.has('sentinel')) return { connectionString: url, table, sentinel };
  // pg would take them for options of its own.
  address.searchParams.delete('table');
  address.searchParams.delete('sentinel');
  return { connectionString: address.href, table, sentinel };
}
