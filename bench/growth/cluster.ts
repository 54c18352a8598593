import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { median, round, table } from '../stats';

const ROUNDS = 5;
const SECONDS = 3;

/**
 * What two processes serve, as a multiple of one, with the gate and without. Requests come from within the processes:
 * on a machine with two cores a load generator would take one of them.
 */
export async function cluster(): Promise<string> {
  const rows = [];
  for (const kind of ['gated', 'ungated']) {
    process.stderr.write(`cluster: ${kind}\n`);
    const workers = [0, 1].map(() => fork(join(__dirname, 'worker.ts'), [kind], { execArgv: ['--import', 'tsx'] }));
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    const [one, two]: [number[], number[]] = [[], []];
    for (let index = 0; index < ROUNDS; index++) {
      one.push(await served(workers.slice(0, 1)));
      two.push(await served(workers));
    }
    for (const worker of workers) worker.disconnect();
    const [alone, together] = [median(one), median(two)];
    rows.push([kind, Math.round(alone), Math.round(together), round(together / alone)]);
  }
  return table(['', 'one process, requests/s', 'two processes, requests/s', 'times'], rows);
}

async function served(workers: readonly ReturnType<typeof fork>[]): Promise<number> {
  const counts = await Promise.all(
    workers.map(async (worker) => {
      worker.send(SECONDS);
      const [perSecond] = (await once(worker, 'message')) as [number];
      return perSecond;
    }),
  );
  return counts.reduce((sum, perSecond) => sum + perSecond, 0);
}
