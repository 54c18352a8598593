import { load } from '../load';
import type { Load } from '../load';
import { percentile } from '../stats';
import { startContender } from './contender';
import type { Contender } from './contender';
import { HOST } from './tokens';
import type { Issuer } from './tokens';
import type { Column } from './workloads';

/** One contender under load for the length of a window. */
export interface Window {
  readonly perSecond: number;
  /** CPU time of the process per request, in us. */
  readonly cpuUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly delayP99Ms: number;
  /** Time on the event loop per request, in us. */
  readonly loopUs: number;
}

/** The windows of one round, by contender. */
export type Round = Readonly<Record<string, Window>>;

/** How a workload is measured. */
export interface Plan {
  readonly rounds: number;
  /** Length of a window. */
  readonly seconds: number;
  /** Requests per second. Default: as many as possible. */
  readonly rate?: number;
  /** Default: all contenders. */
  readonly only?: readonly string[];
}

/** What all ratios are taken to. */
export const BASE = 'bare';

/** How often a round is repeated before the benchmark gives up. */
const MOST_REPEATS = 5;

/** All contenders, each running in its own process for as long as the benchmark takes. */
export class Field {
  readonly #running = new Map<string, Contender>();
  /** Tokens sent so far, by contender: a new token must not be sent twice. */
  readonly #sent = new Map<string, number>();

  constructor(
    readonly issuer: Issuer,
    readonly names: readonly string[],
    readonly column: Column,
    /** The headers of the requests. */
    readonly file: string,
    readonly load: Pick<Load, 'connections' | 'pipelining'> & { readonly threads: 1 | 2 },
  ) {}

  async start(): Promise<void> {
    const { column, issuer, load } = this;
    for (const name of this.names) {
      this.#running.set(name, await startContender(name, issuer, { dpop: column.dpop, threads: load.threads }));
    }
  }

  async stop(): Promise<void> {
    for (const contender of this.#running.values()) await contender.stop();
  }

  /**
   * Measures the contenders by turns, in an order that rotates from round to round. Round 0 warms up and is dropped. A
   * round with a failed request or a dead contender is repeated after all contenders have been restarted.
   */
  async measure(plan: Plan): Promise<Round[]> {
    const rounds: Round[] = [];
    let repeats = 0;
    for (let at = 0; at <= plan.rounds;) {
      try {
        const round = await this.#round(at, plan);
        if (at > 0) rounds.push(round);
        at += 1;
        repeats = 0;
      } catch (error) {
        if (++repeats > MOST_REPEATS) throw error;
        console.error(`${this.column.name}: repeating round ${at}: ${String(error)}`);
        await this.stop();
        await this.start();
        // Warms the new processes up.
        await this.#round(at, plan).catch(() => undefined);
      }
    }
    return rounds;
  }

  async #round(at: number, plan: Plan): Promise<Round> {
    const { only = this.names } = plan;
    const turn = at % only.length;
    const windows: Record<string, Window> = {};
    for (const name of [...only.slice(turn), ...only.slice(0, turn)]) {
      windows[name] = await this.#window(name, plan);
    }
    console.error(`${this.column.name}: round ${at}`);
    return windows;
  }

  async #window(name: string, { seconds, rate }: Plan): Promise<Window> {
    const contender = this.#running.get(name) as Contender;
    for (let attempt = 1; ; attempt++) {
      const from = this.#sent.get(name) ?? 0;
      await contender.usage();
      const result = await load({ url: contender.url, host: HOST, file: this.file, from, seconds, rate, ...this.load });
      const { cpuUs, loopUs, delayP99Ms } = await contender.usage();
      const wrong = result.failed + result.refused;
      if (wrong > 0 || result.responses === 0)
        throw new Error(`${name}: ${wrong} failures, ${result.responses} responses`);
      this.#sent.set(name, from + result.responses + IN_FLIGHT);
      const { responses, p50Ms, p99Ms, stolenMs = 0 } = result;
      if (stolenMs > MOST_STOLEN * seconds * 1000 && attempt < MOST_ATTEMPTS) continue;
      const [cpu, loop] = [cpuUs / responses, loopUs / responses];
      return { perSecond: responses / result.seconds, cpuUs: cpu, loopUs: loop, p50Ms, p99Ms, delayP99Ms };
    }
  }
}

/** A latency says nothing about a server that had no processor: such a window is repeated. */
const MOST_STOLEN = 0.1;
const MOST_ATTEMPTS = 3;

/** More requests than can be without a response when a window ends. */
const IN_FLIGHT = 1_000;

/** A median with the middle half of the values. */
export interface Spread {
  readonly median: number;
  readonly lower: number;
  readonly upper: number;
}

/**
 * The spread of a figure over all rounds. As a ratio to bare Express (`true`) or to another contender, the ratio is taken
 * within each round.
 */
export function spread(
  rounds: readonly Round[],
  name: string,
  figure: keyof Window,
  ratioTo: string | boolean = false,
): Spread {
  const base = ratioTo === true ? BASE : ratioTo;
  const values = rounds.map((round) => {
    const own = round[name]?.[figure] ?? NaN;
    return base ? own / (round[base]?.[figure] ?? NaN) : own;
  });
  return { median: percentile(values, 0.5), lower: percentile(values, 0.25), upper: percentile(values, 0.75) };
}
