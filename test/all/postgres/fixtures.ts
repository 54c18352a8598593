import { Pool } from 'pg';
import type { PoolConfig } from 'pg';
import { postgresGenerations } from '../../../src/stores/postgres/log';
import type { GenerationLog } from '../../../src/gate/generation/log';
import type { PostgresGenerationsOptions } from '../../../src/stores/postgres/log';
import type { Batch, Change, LogReader, Mark } from '../../../src/gate/generation/log';

/** A source with the pool that it uses. */
export interface OpenSource {
  readonly source: GenerationLog;
  readonly pool: Pool;
  close(): Promise<void>;
}

/** Opens a source with a pool of its own, as a process would. */
export function openSource(
  config: PoolConfig,
  options: Partial<Omit<PostgresGenerationsOptions, 'pool'>> = {},
): OpenSource {
  const pool = new Pool({ max: 4, connectionTimeoutMillis: 500, ...config });
  const source = postgresGenerations({ pool, createTable: true, ...options });
  return {
    source,
    pool,
    async close() {
      await source.close();
      await pool.end();
    },
  };
}

/** Connections for the test itself; a server that stops while they end is not a failure. */
export function quietPool(connectionString: string): Pool {
  const pool = new Pool({ connectionString });
  pool.on('error', () => undefined);
  return pool;
}

/** Reads to the end of the log. */
export async function readToEnd(reader: LogReader): Promise<Batch> {
  const changes: Change[] = [];
  for (;;) {
    const batch = await reader.next(0);
    changes.push(...batch.changes);
    if (batch.end) return { ...batch, changes };
  }
}

/** What a new reader finds. */
export async function readAll({ source }: Pick<OpenSource, 'source'>): Promise<readonly Change[]> {
  const reader = source.reader();
  try {
    return (await readToEnd(reader)).changes;
  } finally {
    reader.close();
  }
}

/** A mark of a log whose changes are kept for a day. */
export function markOf(unit: number, epoch = 'one', keptMs = 86_400_000): Mark {
  return { epoch, unit, completeMs: Date.now(), keptMs };
}
