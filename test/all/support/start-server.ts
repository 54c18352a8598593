import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { eventually } from './eventually';

/** A server of the system that was started for a test. */
export interface StartedServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts a server whose files are in `folder`, and resolves when it accepts connections. `stop()` removes the folder. */
export async function startServer({
  command,
  args,
  folder,
  port,
}: {
  readonly command: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly port: number;
}): Promise<StartedServer> {
  const child = spawn(command, args, { stdio: 'ignore' });
  // A server must not outlive the tests, whatever ends them.
  const onExit = (): void => void child.kill('SIGKILL');
  process.once('exit', onExit);
  const exited = once(child, 'exit');
  await eventually(`${command} responds`, () => {
    if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}`);
    return isOpen(port);
  });
  return {
    port,
    async stop() {
      process.off('exit', onExit);
      child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
