import { existsSync } from 'node:fs';
import { readdir, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { postgresGenerations, redisGenerations } from '../../../src/generation';
import type { PublishingSource } from '../../../src/generation';
import { recordingLogger } from '../../support/log';
import { eventually } from '../support/eventually';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { startRedis } from '../support/redis-server';

/** A source with connections of its own, as one process has them. */
export interface Connected {
  readonly source: PublishingSource;
  end(): Promise<void>;
}

/** In ms since the epoch. */
export interface LossWindow {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** A store that can be ended at any time. */
export interface HistoryStore {
  /** Of the server that is the primary now. */
  readonly port: number;
  /** Whether it may lose what it acknowledged shortly before it was killed. */
  readonly isLossy: boolean;
  connect(port: number): Connected;
  /**
   * SIGKILL, then a start on the same data after `pauseMs`. Before the start it calls `onLoss` with the time in which
   * changes were acknowledged that may be lost.
   */
  kill(pauseMs: number, onLoss: (window: LossWindow) => void): Promise<void>;
  /** Kills the primary and promotes its standby; `port` is another one then. */
  failOver?(): Promise<void>;
  /** Sends hints about clients that may not have moved: repeated, late and out of order. */
  hint(clientIds: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

const TIMEOUT_MS = 1_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Files in memory survive a SIGKILL too, and a flush takes no time. */
const FILES_IN_MEMORY = '/dev/shm';

/** Redis may lose a second with `everysec`, and two when the disk is slow. */
const EVERYSEC_MS = 2_000;

/** Redis with an append-only file: flushed before each reply (`always`) or once a second (`everysec`). */
export async function redisStore(fsync: 'always' | 'everysec'): Promise<HistoryStore> {
  const isLossy = fsync === 'everysec';
  const parent = existsSync(FILES_IN_MEMORY) ? FILES_IN_MEMORY : undefined;
  const server = await startRedis({ appendOnly: isLossy ? fsync : true, ...(parent && { parent }) });
  const disk = isLossy ? await watchFile(join(server.folder, 'appendonlydir')) : undefined;
  return {
    port: server.port,
    isLossy,
    connect(port) {
      const client = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: 1, retryStrategy: () => 50 });
      client.on('error', () => undefined);
      const source = redisGenerations({ client, timeoutMs: TIMEOUT_MS, logger: recordingLogger() });
      return {
        source,
        async end() {
          await source.close();
          client.disconnect();
        },
      };
    },
    async kill(pauseMs, onLoss) {
      const killedMs = Date.now();
      await server.kill();
      await disk?.loseSince(killedMs - EVERYSEC_MS / 2);
      await pause(pauseMs);
      if (disk) onLoss({ fromMs: killedMs - EVERYSEC_MS, untilMs: Date.now() });
      await server.start();
    },
    async hint(clientIds) {
      for (const clientId of clientIds) await server.command('PUBLISH', 'tillgate:generations', clientId);
    },
    async stop() {
      disk?.stop();
      await server.stop();
    },
  };
}

const SAMPLE_MS = 50;

/**
 * SIGKILL alone loses nothing that a process has written to a file: the operating system has it. So the file is cut to
 * the length that it had a second before, as after a power failure.
 */
async function watchFile(folder: string): Promise<{ loseSince(ms: number): Promise<void>; stop(): void }> {
  const name = (await readdir(folder)).find((file) => file.endsWith('.incr.aof')) ?? 'appendonly.aof';
  const path = join(folder, name);
  let samples = [{ atMs: 0, length: 0 }];
  const sample = async (): Promise<void> => {
    const { size } = await stat(path);
    samples = [...samples.slice(-100), { atMs: Date.now(), length: size }];
  };
  const timer = setInterval(() => void sample(), SAMPLE_MS);
  return {
    async loseSince(ms) {
      const last = samples.findLast(({ atMs }) => atMs <= ms);
      const { size } = await stat(path);
      if (last && last.length < size) await truncate(path, last.length);
      samples = [{ atMs: 0, length: last?.length ?? 0 }];
    },
    stop: () => clearInterval(timer),
  };
}

/** PostgreSQL with `synchronous_commit = on` and a synchronous standby that can be promoted. */
export async function postgresStore(): Promise<HistoryStore> {
  let primary = await startPostgres();
  let standby: Promise<PostgresServer> | undefined = follow(primary);
  await standby;
  return {
    get port() {
      return primary.port;
    },
    isLossy: false,
    connect(port) {
      const connectionString = `postgres://postgres@127.0.0.1:${port}/postgres`;
      const pool = new Pool({ max: 4, connectionTimeoutMillis: TIMEOUT_MS, connectionString });
      const given = { createTable: true, timeoutMs: TIMEOUT_MS, heartbeatMs: 200, logger: recordingLogger() };
      const source = postgresGenerations({ pool, ...given });
      return {
        source,
        async end() {
          await source.close();
          await pool.end();
        },
      };
    },
    async kill(pauseMs) {
      await primary.kill();
      await pause(pauseMs);
      await primary.start();
    },
    async failOver() {
      const next = await (standby ?? follow(primary));
      await primary.kill();
      await sql(next, 'SELECT pg_promote()');
      const old = primary;
      primary = next;
      standby = undefined;
      await old.stop();
    },
    async hint(clientIds) {
      await sql(primary, clientIds.map(() => "SELECT pg_notify('tillgate_generations', '')").join(';'));
    },
    async stop() {
      await (await standby)?.stop();
      await primary.stop();
    },
  };
}

/** Starts a standby, and resolves once the primary acknowledges no commit that the standby has not. */
async function follow(primary: PostgresServer): Promise<PostgresServer> {
  const standby = await startPostgres({ standbyOf: primary, settings: ['wal_retrieve_retry_interval=100ms'] });
  await sql(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'; SELECT pg_reload_conf()");
  await eventually('a synchronous standby', () => is(primary, "sync_state = 'sync' AND state = 'streaming'"));
  // Commits from before are acknowledged, but perhaps not there yet.
  const end = await sql(primary, 'SELECT pg_current_wal_lsn()');
  await eventually('a standby that has caught up', () => is(primary, `flush_lsn >= '${end.trim()}'`));
  return standby;
}

async function is(primary: PostgresServer, condition: string): Promise<boolean> {
  return (await sql(primary, `SELECT 'yes' FROM pg_stat_replication WHERE ${condition}`)).includes('yes');
}

function sql(server: PostgresServer, statements: string): Promise<string> {
  return server.tool('psql', ['-qAt', '-v', 'ON_ERROR_STOP=1'], `${statements};`);
}
