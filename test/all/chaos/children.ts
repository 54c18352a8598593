import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { collect } from '../setup/process';
import type { Ledger } from './ledger';

/** A process of the run. */
export interface Child {
  /** Its name in the ledger. */
  readonly name: string;
  readonly port: number;
  /** Resolves when its gate is ready. */
  readonly ready: Promise<void>;
  send(message: object): void;
  /** SIGKILL; resolves once it has ended. */
  kill(): Promise<void>;
}

const STARVED = 'machine too busy for a process';

interface Message {
  readonly port?: number;
  readonly isReady?: true;
  readonly bytes?: number;
  /** For how long the process could not run just before this. */
  readonly starvedMs?: number;
  /** A change that the publisher calls published. */
  readonly published?: readonly [client: string, generation: number];
}

/**
 * Starts a compiled script and resolves when it listens. Its memory goes into the ledger, and its end as a
 * crash, unless `kill()` ended it.
 */
export async function startChild(
  script: string,
  name: string,
  args: readonly string[],
  ledger: Ledger,
  onPublished: (client: string, generation: number) => void = () => undefined,
): Promise<Child> {
  const child = spawn(process.execPath, [script, ...args], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  /** A process that gets no time of the machine can neither read nor mark: an outage, of every gate where it is the publisher. */
  function addStarved(starvedMs: number): void {
    const toMs = Date.now();
    const [owner = ''] = name.split('#');
    const gate = owner === 'token-server' ? {} : { gate: owner };
    ledger.add({ kind: 'fault', name: STARVED, fromMs: toMs - starvedMs, toMs, isOutage: true, ...gate });
  }

  const printed = collect(child.stderr);
  let isKilled = false;
  const exited = once(child, 'close').then(([code, signal]: unknown[]) => {
    const detail = `${String(signal ?? code)} ${printed().slice(-500)}`.trim();
    if (!isKilled) ledger.add({ kind: 'crash', process: name, atMs: Date.now(), detail });
    return detail;
  });
  let resolveReady = (): void => undefined;
  const ready = new Promise<void>((resolve) => (resolveReady = resolve));
  const port = await new Promise<number>((resolve, reject) => {
    child.on('message', (message: Message) => {
      if (message.port !== undefined) resolve(message.port);
      if (message.isReady) resolveReady();
      if (message.published) onPublished(...message.published);
      if (message.starvedMs) addStarved(message.starvedMs);
      if (message.bytes === undefined) return;
      ledger.add({ kind: 'memory', process: name, atMs: Date.now(), bytes: message.bytes });
    });
    void exited.then((detail) => reject(new Error(`${name} ended before it listened: ${detail}`)));
  });
  return {
    name,
    port,
    ready,
    send: (message) => void child.send(message, () => undefined),
    async kill() {
      isKilled = true;
      child.kill('SIGKILL');
      await exited;
    },
  };
}
