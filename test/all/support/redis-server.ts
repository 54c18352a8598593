import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { requireCommand } from '../setup/packages';
import { eventually } from './eventually';
import { freePort } from './free-port';

/** A Redis server of our own: it can be killed and started again. */
export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** Of the process that runs now. */
  readonly pid: number;
  /** Where its data is. */
  readonly folder: string;
  /** Starts it again on the same data. */
  start(): Promise<void>;
  /** SIGKILL: what is not on the disk is lost. */
  kill(): Promise<void>;
  /** Makes a replica the primary; it stays that when it is started again. */
  promote(): Promise<void>;
  /** Runs one command against it. */
  command(name: string, ...args: string[]): Promise<unknown>;
  /** Stops it and removes its data. */
  stop(): Promise<void>;
}

/** How a server keeps its data. */
export interface RedisServerOptions {
  /**
   * Whether every change goes into the append-only file; without, a killed server comes back empty. The file is flushed
   * to the disk before each reply, or once a second.
   */
  readonly appendOnly?: boolean | 'everysec';
  /** Where to make its folder. Default: the folder of temporary files. */
  readonly parent?: string;
  /** Port of the primary that it is a replica of. */
  readonly replicaOf?: number;
  /** Variables of its process, such as those of `fakeClock()`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further settings, `--name` and `value` in turn. */
  readonly settings?: readonly string[];
  /** Listens on one more port, with TLS. */
  readonly tls?: { readonly port: number; readonly certificateFile: string; readonly keyFile: string };
}

/** Starts a server of Debian's package in a folder of its own, on a free port of this machine. */
export async function startRedis({
  appendOnly = false,
  parent = tmpdir(),
  replicaOf,
  settings: further = [],
  env,
  tls,
}: RedisServerOptions = {}): Promise<RedisServer> {
  requireCommand('redis-server', 'apt-get install redis-server');
  const folder = await mkdtemp(join(parent, 'tillgate-redis-'));
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--daemonize', 'no'];
  settings.push(...further);
  if (appendOnly) settings.push('--appendonly', 'yes', '--appendfsync', appendOnly === true ? 'always' : appendOnly);
  if (tls) {
    settings.push('--tls-port', String(tls.port), '--tls-auth-clients', 'no');
    settings.push('--tls-cert-file', tls.certificateFile, '--tls-key-file', tls.keyFile);
    settings.push('--tls-ca-cert-file', tls.certificateFile);
  }
  const replicaSettings = replicaOf === undefined ? [] : ['--replicaof', '127.0.0.1', String(replicaOf)];
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    child = spawn('redis-server', [...settings, ...replicaSettings], {
      stdio: 'ignore',
      env: { ...process.env, ...env },
    });
    const started = child;
    await eventually('Redis responds', () => {
      if (started.exitCode !== null) throw new Error(`redis-server ${settings.join(' ')} ended: ${started.exitCode}`);
      return commandTo(url, 'PING').then(
        () => true,
        () => false,
      );
    });
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  // A server must not outlive the tests, whatever ends them.
  const onExit = (): void => void child?.kill('SIGKILL');
  process.once('exit', onExit);
  await start();
  return {
    port,
    url,
    folder,
    get pid() {
      return child?.pid ?? NaN;
    },
    start,
    kill: () => end('SIGKILL'),
    async promote() {
      await commandTo(url, 'REPLICAOF', 'NO', 'ONE');
      replicaSettings.length = 0;
    },
    command: (name, ...args) => commandTo(url, name, ...args),
    async stop() {
      process.off('exit', onExit);
      await end('SIGTERM');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * The server that `TILLGATE_TEST_REDIS_URL` names, or one of our own.
 *
 * @throws Error within seconds when the named server cannot be reached
 */
export async function anyRedis(
  url = process.env['TILLGATE_TEST_REDIS_URL'],
): Promise<{ readonly url: string; stop(): Promise<void> }> {
  if (url === undefined || url === '') return startRedis();
  await commandTo(url, 'PING').catch((cause: unknown) => {
    throw new Error('TILLGATE_TEST_REDIS_URL: the server cannot be reached; start it, or unset the variable', {
      cause,
    });
  });
  return { url, stop: () => Promise.resolve() };
}

async function commandTo(url: string, name: string, ...args: string[]): Promise<unknown> {
  // By default ioredis waits 2 s for the end of a connection that never was.
  const disconnectTimeout = 0;
  const client = new Redis(url, {
    connectTimeout: 3_000,
    retryStrategy: () => null,
    lazyConnect: true,
    disconnectTimeout,
  });
  client.on('error', () => undefined);
  try {
    return await client.call(name, ...args);
  } finally {
    client.disconnect();
  }
}
