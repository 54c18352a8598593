import { load } from '../load';
import { median } from '../stats';
import { startContender } from './contender';
import type { Issuer } from './tokens';
import type { Workload } from './workloads';

/** Latency of a contender at a fixed rate. */
export interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** p99 of how late the event loop was. */
  readonly delayP99Ms: number;
}

/** Half of what bare Express answers, for each contender in turns: what a request waits where there is room. */
export async function halfLoad(
  issuer: Issuer,
  contenders: readonly string[],
  workload: Workload,
  rate: number,
  rounds: number,
  seconds: number,
): Promise<ReadonlyMap<string, Latency>> {
  const all = new Map(contenders.map((name) => [name, [] as Latency[]]));
  for (let round = 1; round <= rounds; round++) {
    for (const name of contenders) {
      process.stderr.write(`half load, round ${round}: ${name}\n`);
      const contender = await startContender(name, issuer);
      try {
        const { url } = contender;
        await load({ url, file: workload.file, seconds: 2 });
        await contender.usage();
        const { p50Ms, p99Ms } = await load({ url, file: workload.file, seconds, rate });
        const { delayP99Ms } = await contender.usage();
        all.get(name)?.push({ p50Ms, p99Ms, delayP99Ms });
      } finally {
        await contender.stop();
      }
    }
  }
  return new Map([...all].map(([name, latencies]) => [name, medians(latencies)]));
}

function medians(latencies: readonly Latency[]): Latency {
  return {
    p50Ms: median(latencies.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(latencies.map(({ p99Ms }) => p99Ms)),
    delayP99Ms: median(latencies.map(({ delayP99Ms }) => delayP99Ms)),
  };
}
