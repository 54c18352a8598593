import { spawn } from 'node:child_process';
import { collect, stop } from '../setup/process';
import { eventually } from '../support/eventually';

/** A server in a process of its own. */
export interface Child {
  stop(): Promise<void>;
}

/** Starts a program and waits until a URL responds with 2xx. It ends with this process. */
export async function startChild(
  [program, ...args]: readonly [string, ...string[]],
  url: string,
  options: { readonly env?: Readonly<Record<string, string>>; readonly cwd?: string } = {},
): Promise<Child> {
  const child = spawn(program, args, {
    ...options,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [output, errors] = [collect(child.stdout), collect(child.stderr)];
  let failure: string | undefined;
  child.once('error', (error) => (failure = error.message));
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  await eventually(`${program} responds at ${url}`, async () => {
    if (failure === undefined && child.exitCode === null && child.signalCode === null) return isUp(url);
    throw new Error(failure ?? `${program} ended with ${child.exitCode ?? child.signalCode}: ${errors()}${output()}`);
  });
  return {
    async stop() {
      process.off('exit', kill);
      await stop(child);
    },
  };
}

async function isUp(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}
