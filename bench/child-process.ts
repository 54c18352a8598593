import { spawn } from 'node:child_process';
import { pinned } from './load';

/** A measured process on the server core, controlled over IPC. */
export interface Child {
  /**
   * Sends a message and returns the next one that the process sends.
   *
   * @throws Error when the process ends before it responds
   */
  ask(message: string | object): Promise<unknown>;
  /** Resolves once the process has ended. */
  stop(): Promise<void>;
}

/** Starts a script in its own process, on one hardware thread or on two, of which the load generator has the second. */
export function startChild(script: string, env: NodeJS.ProcessEnv = process.env, threads: 1 | 2 = 1): Child {
  const [command, args] = pinned(threads === 1 ? '0' : '0,1', process.execPath, [script]);
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], env });
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(`${script} ended with ${signal ?? code}`));
    child.on('error', (error) => resolve(`${script}: ${error.message}`));
  });
  return {
    ask(message) {
      return new Promise((resolve, reject) => {
        child.once('message', resolve);
        void ended.then((reason) => reject(new Error(reason)));
        // The exit reason says more than the EPIPE of a process that has ended.
        child.send(message, () => undefined);
      });
    },
    async stop() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
