import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMPILED } from '../support/compiled';
import { freePort } from '../support/free-port';
import { startTcpProxy } from '../support/tcp-proxy';
import type { TcpProxy } from '../support/tcp-proxy';
import type { Bounds } from './check';
import { startChild } from './children';
import type { Child } from './children';
import { ENGINES } from './engines';
import type { Engine, SourceName } from './engines';
import type { Ledger } from './ledger';
import { observeLog } from './observer';
import { watchScheduling } from './scheduling';
import type { Watched } from './scheduling';

/** Limits of the gates: short, so that a run of minutes passes each of them often. */
const LIMITS = {
  // As in production, several times as long as a read takes: a burst of requests on a busy machine is not an outage.
  maxStalenessMs: 4_000,
  maxSilenceMs: 5_000,
  pollMs: 1_000,
  readTimeoutMs: 1_000,
  clockToleranceSeconds: 2,
};

export const BOUNDS: Bounds = {
  healthyMs: LIMITS.pollMs,
  // The clocks of publisher and gate may differ by the tolerance.
  anyFaultMs: LIMITS.maxSilenceMs + LIMITS.clockToleranceSeconds * 1_000,
  // A mark that moves is waited for, 5 s at most, once the log can be read: a lost response takes 1 s, a new connection 2 s.
  recoveryMs: 8_000,
  stall: { longerThanMs: LIMITS.readTimeoutMs, withinMs: LIMITS.maxStalenessMs },
  growthBytes: 64_000_000,
};

/** A process of a gate and the wire to its log. */
export interface Resource {
  readonly name: string;
  readonly wire: TcpProxy;
  /** Absent while it is being restarted. */
  child: Child | undefined;
}

/** Everything that takes part in a run. */
export interface Stand {
  readonly engine: Engine | undefined;
  readonly gates: readonly Resource[];
  /** From the token server to the log; absent where the log is its own. */
  readonly publisherWire: TcpProxy | undefined;
  readonly tokenServer: {
    readonly url: string;
    restart: () => Promise<void>;
    /** Ends it, and with it the publisher. */
    kill: () => Promise<void>;
  };
  readonly restart: (gate: Resource) => Promise<void>;
  /** Starts one more gate, which knows nothing yet. */
  readonly addGate: (name: string, limits?: Partial<typeof LIMITS>) => Promise<Resource>;
  readonly close: () => Promise<void>;
}

interface StandOptions {
  readonly source: SourceName;
  readonly gateCount: number;
  /** `issuer`, `audience` and `keys` of the gates. */
  readonly trusted: object;
  readonly ledger: Ledger;
  /** Compiled sources of another version. */
  readonly beside: string | undefined;
}

export async function startStand({ source, gateCount, trusted, ledger, beside }: StandOptions): Promise<Stand> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tillgate-chaos-'));
  const engine = await ENGINES[source]?.();
  const tokenPort = await freePort();
  const publisherWire = engine && (await startTcpProxy(engine.port));
  const publisherArgs = [dataDir, String(tokenPort), ...(publisherWire ? [engine.url(publisherWire.port)] : [])];
  const observer = engine && observeLog(engine, ledger);
  let restarts = 0;
  const versions = [COMPILED, beside ?? COMPILED];
  const startTokenServer = (): Promise<Child> => {
    const script = join(versions[restarts++ % 2] as string, 'test/all/chaos/token-server-process.js');
    return startChild(script, `token-server#${restarts}`, publisherArgs, ledger, (...change) =>
      observer?.find(...change),
    );
  };
  let tokenServer = await startTokenServer();

  const gates: Resource[] = [];
  const starts = new Map<string, number>();

  async function start(gate: Resource, limits = {}): Promise<void> {
    const number = (starts.get(gate.name) ?? 0) + 1;
    starts.set(gate.name, number);
    const { port } = gate.wire;
    const generationSource = engine?.url(port) ?? `http://127.0.0.1:${port}/generations`;
    const options = JSON.stringify({ ...trusted, ...LIMITS, ...limits, generationSource });
    const script = join(versions[gates.indexOf(gate) % 2] as string, 'test/all/chaos/gate-process.js');
    gate.child = await startChild(script, `${gate.name}#${number}`, [options], ledger);
  }

  async function addGate(name: string, limits = {}): Promise<Resource> {
    const gate: Resource = { name, wire: await startTcpProxy(engine?.port ?? tokenPort), child: undefined };
    gates.push(gate);
    await start(gate, limits);
    return gate;
  }

  for (let number = 1; number <= gateCount; number++) await addGate(`gate-${number}`);
  const scheduling = watchScheduling(
    (): readonly Watched[] => [
      ...gates.flatMap(({ name, child }) => (child ? [{ name, pid: child.pid, gate: name }] : [])),
      { name: 'token server', pid: tokenServer.pid },
      ...(engine?.pids() ?? []).map((pid) => ({ name: `engine ${pid}`, pid })),
    ],
    ledger,
  );
  return {
    engine,
    gates,
    publisherWire,
    tokenServer: {
      url: `http://127.0.0.1:${tokenPort}`,
      async restart() {
        await tokenServer.kill();
        tokenServer = await startTokenServer();
      },
      kill: () => tokenServer.kill(),
    },
    async restart(gate) {
      const { child } = gate;
      gate.child = undefined;
      await child?.kill();
      await start(gate);
    },
    addGate,
    async close() {
      scheduling.close();
      for (const { child, wire } of gates) {
        await child?.kill();
        await wire.close();
      }
      await tokenServer.kill();
      await observer?.close();
      await publisherWire?.close();
      await engine?.stop();
      await rm(dataDir, { recursive: true });
    },
  };
}
