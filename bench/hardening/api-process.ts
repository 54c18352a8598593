import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';

/** What the API costs at a moment, after a garbage collection. */
export interface ApiFigures {
  readonly heapUsed: number;
  readonly rss: number;
  /** Processor time so far, in ms. */
  readonly cpuMs: number;
}

/** What the process says. */
export type FromApi =
  { readonly kind: 'listening'; readonly port: number } | { readonly kind: 'figures'; readonly figures: ApiFigures };

/** An API with a gate in front, in a process of its own. */
export interface ApiProcess {
  /** Address of the one route there is. */
  readonly orders: string;
  figures(): Promise<ApiFigures>;
  stop(): void;
}

/** Starts it, for an issuer on loopback. */
export async function startApiProcess(issuer: string, audience: string): Promise<ApiProcess> {
  const child = fork(join(__dirname, 'guarded-api.ts'), [issuer, audience], {
    execArgv: ['--expose-gc', '--import', 'tsx'],
  });
  const stop = (): void => void child.kill();
  process.once('exit', stop);
  const { port } = await next(child, 'listening');
  return {
    orders: `http://127.0.0.1:${port}/v1/orders`,
    async figures() {
      const response = next(child, 'figures');
      child.send('figures');
      return (await response).figures;
    },
    stop,
  };
}

function next<Kind extends FromApi['kind']>(
  child: ChildProcess,
  kind: Kind,
): Promise<Extract<FromApi, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    const exited = (code: number | null): void => reject(new Error(`the API ended with ${code}`));
    child.once('exit', exited);
    child.on('message', function listen(message: FromApi) {
      if (message.kind !== kind) return;
      child.off('message', listen).off('exit', exited);
      resolve(message as Extract<FromApi, { kind: Kind }>);
    });
  });
}
