import type { Schedule } from '../core/clock';
import type { Logger } from '../core/logger';
import { postgresGenerations } from './postgres';
import type { PostgresPool } from './postgres-pool';
import type { GenerationSource } from './source';

/** What a source that is made from an address may be given. */
export interface PostgresUrlDependencies {
  readonly schedule?: Schedule | undefined;
  readonly logger?: Logger | undefined;
}

/** One listens, one reads, one publishes, and one to spare. */
const CONNECTIONS = 4;
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 10_000;

/**
 * Makes the source for a `postgres://` address, as libpq and pg write it: `sslmode` in its query decides about TLS. The
 * table is created if it does not exist. pg is loaded when the source is first used.
 *
 * @throws TypeError when the address is wrong or pg is not installed; the message does not repeat the address.
 */
export function postgresFromUrl(url: string, dependencies: PostgresUrlDependencies): GenerationSource {
  requireAddress(url);
  requirePg();
  const { pool, end } = lazyPool(url);
  const source = postgresGenerations({ ...dependencies, pool, createTable: true });
  return {
    ...source,
    async close() {
      await source.close();
      await end();
    },
  };
}

function requireAddress(url: string): void {
  // Node's error repeats its input, and with it the password.
  if (!URL.canParse(url)) throw new TypeError('generations: the postgres: address is not a valid URL');
}

/** Looks for pg without loading it, so that a missing one is known at the start. */
function requirePg(): void {
  try {
    require.resolve('pg');
  } catch {
    throw new TypeError(
      'generations: a postgres: address needs the package pg, which is not installed: npm install pg@8',
    );
  }
}

interface LazyPool {
  readonly pool: PostgresPool;
  readonly end: () => Promise<void>;
}

/** A pool that comes to life with its first connection. */
function lazyPool(connectionString: string): LazyPool {
  const listeners = new Set<(error: Error) => void>();
  let opening: ReturnType<typeof open> | undefined;

  async function open() {
    const { Pool } = await import('pg');
    const pool = new Pool({
      connectionString,
      max: CONNECTIONS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      application_name: 'tillgate',
    });
    pool.on('error', (error) => listeners.forEach((listener) => listener(error)));
    return pool;
  }

  return {
    pool: {
      connect: async () => (await (opening ??= open())).connect(),
      on: (_, listener) => listeners.add(listener),
    },
    async end() {
      const pool = await opening;
      if (pool && !pool.ending) await pool.end();
    },
  };
}
