import { load } from '../load';
import { median } from '../stats';
import { startContender } from './contender';
import type { Contender } from './contender';
import type { Issuer } from './tokens';
import type { Workload } from './workloads';

/** One contender under one workload, in one round. */
export interface Sample {
  readonly perSecond: number;
  /** CPU time of the process per request, in us. */
  readonly cpuUs: number;
  readonly p99Ms: number;
  readonly delayP99Ms: number;
  readonly rssMb: number;
}

/** What is run, in turns. */
export interface Plan {
  readonly issuer: Issuer;
  readonly contenders: readonly string[];
  readonly workloads: readonly Workload[];
  readonly rounds: number;
  readonly seconds: number;
}

/** Samples by contender, then by workload. */
export type Samples = ReadonlyMap<string, ReadonlyMap<string, readonly Sample[]>>;

/** What is compared against. */
export const BASE = 'bare';

/** Runs the contenders in turns, round after round, so that what else happens on the machine meets each of them. */
export async function runRounds(plan: Plan): Promise<Samples> {
  const samples = new Map(plan.contenders.map((name) => [name, new Map<string, Sample[]>()]));
  for (let round = 1; round <= plan.rounds; round++) {
    for (const name of plan.contenders) {
      process.stderr.write(`round ${round}: ${name}\n`);
      const contender = await startContender(name, plan.issuer);
      try {
        for (const workload of plan.workloads) {
          const all = samples.get(name) as Map<string, Sample[]>;
          const sample = await measure(contender, name, workload, plan.seconds);
          all.set(workload.name, [...(all.get(workload.name) ?? []), sample]);
        }
      } finally {
        await contender.stop();
      }
    }
  }
  return samples;
}

/** Sent by the warm-up, and not answered when it ended. */
const IN_FLIGHT = 100;

async function measure(contender: Contender, name: string, workload: Workload, seconds: number): Promise<Sample> {
  const { url } = contender;
  const { file } = workload;
  const warmUp = await load({ url, file, seconds: Math.max(1, Math.round(seconds / 2)) });
  await contender.usage();
  const answers = await load({ url, file, seconds, from: warmUp.answered + IN_FLIGHT });
  const { cpuUs, delayP99Ms, rssBytes } = await contender.usage();
  const passes = workload.passes || !checksTokens(name);
  const wrong = answers.failed + (passes ? answers.refused : answers.answered - answers.refused);
  if (wrong > 0)
    throw new Error(`${name}, ${workload.name}: ${wrong} of ${answers.answered} answers are not as expected`);
  return {
    perSecond: answers.answered / answers.seconds,
    cpuUs: cpuUs / answers.answered,
    p99Ms: answers.p99Ms,
    delayP99Ms,
    rssMb: rssBytes / 1_048_576,
  };
}

function checksTokens(name: string): boolean {
  return ![BASE, 'two-noops', 'passport-noop'].includes(name);
}

/** One cell of the table: a contender under a workload, as a share of bare Express in the same round. */
export interface Cell {
  readonly share: number;
  readonly lowest: number;
  readonly highest: number;
  readonly cpuUs: number;
}

/** Medians of the shares of each round, and of the CPU time. */
export function cellOf(samples: Samples, contender: string, workload: string): Cell {
  const own = samples.get(contender)?.get(workload) ?? [];
  const base = samples.get(BASE)?.get(workload) ?? [];
  const shares = own.map(({ perSecond }, round) => perSecond / (base[round]?.perSecond ?? NaN));
  return {
    share: median(shares),
    lowest: Math.min(...shares),
    highest: Math.max(...shares),
    cpuUs: median(own.map(({ cpuUs }) => cpuUs)),
  };
}
