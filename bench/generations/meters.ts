import { execFile } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Pool } from 'pg';
import type { PostgresServer } from '../../test/all/support/postgres-server';
import type { RedisServer } from '../../test/all/support/redis-server';
import type { FromFeed } from './messages';

const run = promisify(execFile);

/** What a server has done since it started. */
export interface Work {
  /** Commands of Redis, transactions of PostgreSQL, requests of a feed. */
  readonly commands: number;
  /** Received and sent. */
  readonly bytes: number;
  readonly cpuSeconds: number;
  /** Open now. */
  readonly connections: number;
}

export type Meter = () => Promise<Work>;

/** INFO counts commands and bytes; the meter's own two commands are among them. */
export function redisMeter(server: RedisServer): Meter {
  return async () => {
    const info = String(await server.command('INFO', 'all'));
    const field = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
    return {
      commands: field('total_commands_processed'),
      bytes: field('total_net_input_bytes') + field('total_net_output_bytes'),
      cpuSeconds: await cpuSeconds(server.pid),
      connections: field('connected_clients') - 1,
    };
  };
}

/** Transactions by pg_stat_database, bytes by the sockets that are open, CPU of all backends. */
export function postgresMeter(server: PostgresServer, pool: Pool): Meter {
  const seen = new Map<string, number>();
  return async () => {
    await pool.query('SELECT pg_stat_clear_snapshot()');
    const { rows } = await pool.query<{ n: string; connections: string }>(
      `SELECT (SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database) AS n,
        (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tillgate') AS connections`,
    );
    for (const [peer, bytes] of await socketBytes(server.port)) seen.set(peer, bytes);
    const processes = [server.pid, ...(await childrenOf(server.pid))];
    for (const pid of processes) seen.set(`cpu ${pid}`, await cpuSeconds(pid).catch(() => 0));
    const sum = (isCpu: boolean): number =>
      [...seen].filter(([key]) => key.startsWith('cpu ') === isCpu).reduce((total, [, value]) => total + value, 0);
    return {
      commands: Number(rows[0]?.n),
      bytes: sum(false),
      cpuSeconds: sum(true),
      connections: Number(rows[0]?.connections),
    };
  };
}

/** A feed counts its own requests and bytes. */
export function processMeter(child: ChildProcess): Meter {
  return async () => {
    const counted = new Promise<FromFeed>((resolve) => child.once('message', resolve));
    child.send('count');
    const { requests = NaN, bytes = NaN, connections = NaN } = await counted;
    return { commands: requests, bytes, cpuSeconds: await cpuSeconds(child.pid as number), connections };
  };
}

/** Time on a CPU of all threads, to the ns. */
async function cpuSeconds(pid: number): Promise<number> {
  let sum = 0;
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').catch(() => '0');
    sum += Number(text.split(' ')[0]) / 1e9;
  }
  return sum;
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').filter(Boolean).map(Number);
}

/** Bytes of each connection that the server has open, by the port of its peer. */
async function socketBytes(port: number): Promise<Map<string, number>> {
  const { stdout } = await run('ss', ['-tinOH', `sport = :${port}`], { maxBuffer: 16 * 1024 * 1024 });
  const connections = new Map<string, number>();
  for (const line of stdout.split('\n')) {
    const peer = line.trim().split(/\s+/)[4];
    const count = (name: string): number => Number(new RegExp(`\\b${name}:(\\d+)`).exec(line)?.[1] ?? 0);
    if (peer) connections.set(peer, count('bytes_sent') + count('bytes_received'));
  }
  return connections;
}
