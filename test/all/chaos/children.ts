import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { collect } from '../setup/process';
import type { Ledger } from './ledger';

/** A process of the run. */
export interface Child {
  /** Its name in the ledger. */
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  /** Resolves when its gate is ready. */
  readonly ready: Promise<void>;
  /** SIGKILL; resolves once it has ended. */
  kill(): Promise<void>;
}

interface Message {
  readonly port?: number;
  readonly isReady?: true;
  readonly bytes?: number;
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
      if (message.bytes === undefined) return;
      ledger.add({ kind: 'memory', process: name, atMs: Date.now(), bytes: message.bytes });
    });
    void exited.then((detail) => reject(new Error(`${name} ended before it listened: ${detail}`)));
  });
  return {
    name,
    pid: child.pid as number,
    port,
    ready,
    async kill() {
      isKilled = true;
      child.kill('SIGKILL');
      await exited;
    },
  };
}
