import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/eventually';
import { fakeClock } from '../support/fake-clock';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { startRedis } from '../support/redis-server';
import { startTcpProxy } from '../support/tcp-proxy';
import { withChildren } from './scheduling';

/** The server of a log, and what can happen to it. */
export interface Engine {
  readonly port: number;
  /** Its processes now. */
  readonly pids: () => readonly number[];
  /** URL of the log through a wire. */
  readonly url: (port: number) => string;
  readonly kill: () => Promise<void>;
  readonly start: () => Promise<void>;
  readonly wipe: () => Promise<void>;
  /** Keeps the state of now for `restore()`. */
  readonly save: () => Promise<void>;
  readonly restore: () => Promise<void>;
  /** Promotes a replica that lags by this much and returns its port: wires must be laid to it. */
  readonly failOver?: (lagMs: number) => Promise<number>;
  /** Sets the clock of the server. */
  readonly setClock?: (aheadMs: number) => void;
  readonly stop: () => Promise<void>;
}

/** Variables of the processes of an engine. */
type Env = Readonly<Record<string, string>>;

export type SourceName = 'redis' | 'postgres' | 'http';

/** The engine of a source; `http` has none: its log is the token server's own. */
export const ENGINES: Readonly<Record<SourceName, ((env?: Env) => Promise<Engine>) | undefined>> = {
  redis: redisEngine,
  postgres: postgresEngine,
  http: undefined,
};

async function redisEngine(env: Env = {}): Promise<Engine> {
  let primary = await startRedis({ appendOnly: true, env });
  let saved: string | undefined;
  const forget = async (): Promise<void> => {
    if (saved !== undefined) await rm(saved, { recursive: true });
    saved = undefined;
  };
  const data = (): string => join(primary.folder, 'appendonlydir');
  return {
    get port() {
      return primary.port;
    },
    pids: () => [primary.pid],
    url: (port) => `redis://127.0.0.1:${port}`,
    kill: () => primary.kill(),
    start: () => primary.start(),
    wipe: async () => void (await primary.command('FLUSHALL')),
    async save() {
      await forget();
      saved = await mkdtemp(join(tmpdir(), 'tillgate-chaos-'));
      await cp(data(), saved, { recursive: true });
    },
    async restore() {
      await primary.kill();
      await rm(data(), { recursive: true });
      await cp(saved as string, data(), { recursive: true });
      await primary.start();
    },
    async failOver(lagMs) {
      const lag = await startTcpProxy(primary.port);
      const replica = await startRedis({ replicaOf: lag.port, appendOnly: true, env });
      const isUp = async (): Promise<boolean> =>
        /master_link_status:up/.test(String(await replica.command('INFO', 'replication')));
      await eventually('replication', isUp);
      lag.delay(() => lagMs);
      await new Promise((resolve) => setTimeout(resolve, 2 * lagMs));
      await replica.promote();
      await lag.close();
      const old = primary;
      primary = replica;
      await old.stop();
      return primary.port;
    },
    async stop() {
      await forget();
      await primary.stop();
    },
  };
}

async function postgresEngine(env: Env = {}): Promise<Engine> {
  const clock = fakeClock();
  const server = await startPostgres({ env: { ...clock.env, ...env } });
  return {
    ...engineOn(server, 'postgres'),
    setClock: (aheadMs) => clock.set(aheadMs),
    async stop() {
      await server.stop();
      clock.remove();
    },
  };
}

/** A log in a database of its own, on a server that others use too: it is not killed. */
export async function postgresDatabase(server: PostgresServer, database: string): Promise<Engine> {
  await server.tool('psql', ['-q', '-c', `CREATE DATABASE ${database}`]);
  return { ...engineOn(server, database), stop: () => Promise.resolve() };
}

function engineOn(server: PostgresServer, database: string): Omit<Engine, 'stop'> {
  const url = (port: number): string => `postgres://postgres@127.0.0.1:${port}/${database}`;
  const tool = (name: string, args: readonly string[], input?: string): Promise<string> =>
    server.tool(name, [...args, '-d', url(server.port)], input);
  const psql = (input: string): Promise<string> => tool('psql', ['-q', '-1', '-v', 'ON_ERROR_STOP=1'], input);
  let dump = '';
  return {
    port: server.port,
    pids: () => withChildren(server.pid),
    url,
    kill: () => server.kill(),
    start: () => server.start(),
    wipe: async () => void (await psql('TRUNCATE tillgate_generations')),
    save: async () => void (dump = await tool('pg_dump', ['--clean', '--if-exists'])),
    restore: async () => void (await psql(dump)),
  };
}
