import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { eventually } from './eventually';
import { freePort } from './free-port';
import { postgresFolder, serverUser } from './postgres-binaries';

const run = promisify(execFile);

/** A PostgreSQL server of our own: it can be killed and started again. */
export interface PostgresServer {
  readonly port: number;
  readonly url: string;
  /** Of the process that runs now. */
  readonly pid: number;
  /** Starts it again on the same data. */
  start(): Promise<void>;
  /** SIGKILL, as a crash of the machine's memory management does. */
  kill(): Promise<void>;
  /** Runs one of PostgreSQL's programs against it and returns what it prints. */
  tool(name: string, args: readonly string[], input?: string): Promise<string>;
  /** Stops it and removes its data. */
  stop(): Promise<void>;
}

// A process that dies loses nothing that it has given to the operating system, so fsync would only cost time.
const SETTINGS = ['fsync=off', 'listen_addresses=127.0.0.1', 'max_prepared_transactions=4'];

/** How a server is started. */
export interface PostgresServerOptions {
  /** The primary that it follows by streaming replication, from a copy of its data. */
  readonly standbyOf?: Pick<PostgresServer, 'port'>;
  /** Variables of its process, such as those of `fakeClock()`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further settings, `name=value`. */
  readonly settings?: readonly string[];
}

/** Starts a server of Debian's package in a folder of its own, on a free port of this machine. */
export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const bin = postgresFolder();
  const user = serverUser();
  const folder = await mkdtemp(join(tmpdir(), 'tillgate-postgres-'));
  if (user.uid !== undefined) await chown(folder, user.uid, user.gid as number);
  const data = join(folder, 'data');
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const asServer = { cwd: folder, ...user };
  if (options.standbyOf) {
    const from = ['-h', '127.0.0.1', '-p', String(options.standbyOf.port), '-U', 'postgres'];
    await run(join(bin, 'pg_basebackup'), ['-D', data, ...from, '-R', '-N', '--checkpoint=fast'], asServer);
  } else {
    await run(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '-N'], asServer);
  }
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    const own = [`port=${port}`, `unix_socket_directories=${folder}`];
    const settings = [...SETTINGS, ...own, ...(options.settings ?? [])];
    await eventually('PostgreSQL responds', async () => {
      // After a kill the children of the old server may hold its memory for a moment: then the new one gives up.
      if (child === undefined || child.exitCode !== null) {
        child = spawn(join(bin, 'postgres'), ['-D', data, ...settings.flatMap((setting) => ['-c', setting])], {
          ...asServer,
          stdio: 'ignore',
          env: { ...process.env, ...options.env },
        });
      }
      return responds(url);
    });
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
    child = undefined;
  }

  // A server must not outlive the tests, whatever ends them.
  const killAtExit = (): void => void child?.kill('SIGINT');
  process.once('exit', killAtExit);
  await start();
  return {
    port,
    url,
    get pid() {
      return child?.pid ?? NaN;
    },
    start,
    kill: () => end('SIGKILL'),
    async tool(name, args, input = '') {
      const running = run(join(bin, name), ['-d', url, ...args], { ...asServer, maxBuffer: 64 * 1024 * 1024 });
      // A tool that reads nothing may have ended by now.
      running.child.stdin?.on('error', () => undefined).end(input);
      return (await running).stdout;
    },
    async stop() {
      // Fast shutdown: open connections are ended.
      await end('SIGINT');
      process.removeListener('exit', killAtExit);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * The server that `TILLGATE_TEST_POSTGRES_URL` names, or one of our own.
 *
 * @throws Error within seconds when the named server cannot be reached
 */
export async function anyPostgres(
  url = process.env['TILLGATE_TEST_POSTGRES_URL'],
): Promise<{ readonly url: string; stop(): Promise<void> }> {
  if (url === undefined || url === '') return startPostgres();
  if (await responds(url)) return { url, stop: () => Promise.resolve() };
  throw new Error('TILLGATE_TEST_POSTGRES_URL: the server cannot be reached; start it, or unset the variable');
}

async function responds(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 3_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
