import { spawn } from 'node:child_process';
import { SERVER_CORE, pinned } from './load';

/** A process under measurement that is asked over IPC, on the server's core. */
export interface Child {
  /**
   * Sends a message and answers the next one that comes back.
   *
   * @throws Error when the process ends before it answers
   */
  ask(message: string | object): Promise<unknown>;
  /** Resolves once the process has ended; also where it has already. */
  stop(): Promise<void>;
}

/** Starts a script in a process of its own. */
export function startChild(script: string, env: NodeJS.ProcessEnv = process.env): Child {
  const [command, args] = pinned(SERVER_CORE, process.execPath, [script]);
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
        // A process that is gone is told of by its exit, which says more than a broken pipe.
        child.send(message, () => undefined);
      });
    },
    async stop() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
