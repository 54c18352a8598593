import { Redis } from 'ioredis';
import { Client } from 'pg';
import { startAuthorizationServer, startProcess, verdict } from '../faults/generation-scene';
import type { Ends } from '../faults/generation-scene';
import { openSource as openPostgres } from '../postgres/fixtures';
import { byIoredis, openSource as openRedis } from '../redis/fixtures';
import type { FakeClock } from '../support/fake-clock';
import { startPostgres } from '../support/postgres-server';
import type { PostgresServer } from '../support/postgres-server';
import { ENGINES, postgresDatabase } from './engines';
import type { Engine } from './engines';

/** Where the log is in Redis and in PostgreSQL. */
export const KEY = 'tillgate:generations';
export const TABLE = 'tillgate_generations';
/** Longer than a busy machine takes for one command: what responds late is tested where a test says so. */
const PATIENT_MS = 30_000;
/** A process polls as often as a test can wait for. */
const LIMITS = { pollMs: 250, readTimeoutMs: PATIENT_MS, skewMs: 1_000 };

type Source = Parameters<typeof startAuthorizationServer>[0];
type Process = ReturnType<typeof startProcess>;

/** A command to the engine: of Redis, or a statement of PostgreSQL. */
type Run = (command: string, ...args: unknown[]) => Promise<unknown>;

export const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

/** Every scenario but one has a database of its own on it. */
let shared: Promise<PostgresServer> | undefined;
afterAll(async () => (await shared)?.stop());
let databases = 0;

/** With a clock of its own where one is given, which Redis does not get: its jemalloc does not survive the start of libfaketime. */
async function startEngine(name: 'redis' | 'postgres', clock?: FakeClock): Promise<Engine> {
  if (name === 'redis') return (await ENGINES.redis?.()) as Engine;
  if (clock) return (await ENGINES.postgres?.(clock.env)) as Engine;
  const server = await (shared ??= startPostgres());
  return postgresDatabase(server, `edge_${++databases}`);
}

/** An engine with a log, and what can be started on it. */
export interface EdgeStand {
  readonly engine: Engine;
  readonly run: Run;
  readonly publish: (
    options?: Parameters<typeof startAuthorizationServer>[1],
  ) => Promise<ReturnType<typeof startAuthorizationServer>>;
  readonly processOn: (options?: Partial<Parameters<typeof startProcess>[1]>) => Promise<Process>;
  /** Appends as another program does, without any check. */
  readonly append: (changes: readonly (readonly [string, number])[]) => Promise<void>;
  /** What a process that starts says about a token from before the last change, once it knows. */
  readonly coldVerdict: (generation: number) => Promise<string>;
}

/** @param timeoutMs - how long a command of the sources may take */
export async function edgeStand(
  name: 'redis' | 'postgres',
  opened: Ends,
  clock?: FakeClock,
  timeoutMs = PATIENT_MS,
): Promise<EdgeStand> {
  const engine = await startEngine(name, clock);
  opened.add(() => engine.stop());
  const run = name === 'redis' ? commandsOf(engine) : statementsOf(engine);

  function commandsOf({ port }: Engine): Run {
    const admin = new Redis(port);
    admin.on('error', () => undefined);
    opened.add(() => admin.disconnect());
    return (command, ...args) => admin.call(command, ...args.map(String));
  }

  function statementsOf({ port, url }: Engine): Run {
    return async (text, ...values) => {
      // Another connection each time: the server is restored in between.
      const admin = new Client({ connectionString: url(port) });
      admin.on('error', () => undefined);
      await admin.connect();
      try {
        return (await admin.query(text, values)).rows;
      } finally {
        await admin.end();
      }
    };
  }

  async function open(): Promise<Source> {
    const url = engine.url(engine.port);
    const one =
      name === 'redis'
        ? await openRedis(byIoredis(), url, { timeoutMs })
        : openPostgres({ connectionString: url, application_name: 'tillgate-edges' }, { timeoutMs });
    opened.add(() => one.close());
    return one.source;
  }

  async function publish(
    options: Parameters<typeof startAuthorizationServer>[1] = {},
  ): Promise<ReturnType<typeof startAuthorizationServer>> {
    const shop = startAuthorizationServer(await open(), { timeoutMs, ...options });
    opened.add(() => shop.publisher.close());
    return shop;
  }

  async function processOn(options: Partial<Parameters<typeof startProcess>[1]> = {}): Promise<Process> {
    const started = startProcess(await open(), { ...LIMITS, ...options });
    opened.add(() => started.close());
    return started;
  }

  async function append(changes: readonly (readonly [string, number])[]): Promise<void> {
    if (name === 'redis') {
      // In one packet: the engine flushes its disk once for it, not for each.
      await Promise.all(
        changes.map(([id, generation]) => run('XADD', KEY, '*', 'client_id', id, 'generation', generation)),
      );
      return;
    }
    await run(
      `INSERT INTO ${TABLE} (client_id, generation) SELECT * FROM unnest($1::text[], $2::bigint[])`,
      changes.map(([id]) => id),
      changes.map(([, generation]) => generation),
    );
  }

  async function coldVerdict(generation: number): Promise<string> {
    const cold = await processOn();
    await cold.settled();
    // It refuses with 503 until it is sure.
    const untilMs = Date.now() + 2 * PATIENT_MS;
    while (verdict(cold, 'pos', generation) === 'generations_unavailable' && Date.now() < untilMs) await pause(50);
    return verdict(cold, 'pos', generation);
  }

  return { engine, run, publish, processOn, append, coldVerdict };
}
