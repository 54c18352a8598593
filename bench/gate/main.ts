/**
 * What a gate costs: Tillgate and what one would take in its place, each as a share of bare Express, in one run.
 * `npm run bench -- --rounds 3 --seconds 4 --only tillgate,jose`. Writes bench/results/gate.json and docs/gate.svg.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { generator } from '../load';
import { percentile, round, table } from '../stats';
import { barChart } from './chart';
import { halfLoad } from './half-load';
import type { Latency } from './half-load';
import { BASE, cellOf, runRounds } from './rounds';
import type { Cell, Samples } from './rounds';
import { startIssuer } from './tokens';
import { writeWorkloads } from './workloads';
import type { Workload } from './workloads';

const PEERS = ['passport-noop', 'fast-jwt', 'jose', 'express-oauth2-jwt-bearer', 'express-jwt', 'passport-by-hand'];

const LABELS: Readonly<Record<string, string>> = {
  bare: 'bare Express',
  tillgate: '**Tillgate**',
  'two-noops': 'two middlewares that do nothing',
  'passport-noop': 'passport, strategy that does nothing',
  'fast-jwt': 'fast-jwt with its cache, by hand',
  jose: 'jose, by hand',
  'express-jwt': 'express-jwt + jwks-rsa',
  'passport-by-hand': 'passport-http-bearer + jsonwebtoken + jwks-rsa, by hand',
};

/** One line of the result. */
interface Row {
  readonly contender: string;
  readonly cells: Readonly<Record<string, Cell>>;
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    only: { type: 'string', default: ['tillgate', 'two-noops', ...PEERS].join() },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  const issuer = await startIssuer();
  try {
    const { hot, thousand, new: fresh, ...refused } = await writeWorkloads(issuer, folder);
    const passing = [hot, thousand, fresh] as Workload[];
    const contenders = [BASE, ...values.only.split(',')];
    const allowed = await runRounds({ issuer, contenders, workloads: passing, rounds, seconds });
    const refusing = { issuer, contenders: [BASE, 'tillgate'], workloads: Object.values(refused), rounds, seconds };
    const refusals = await runRounds(refusing);
    const rate = Math.round(capacity(allowed, hot as Workload) / 2);
    const latency = await halfLoad(issuer, [BASE, 'tillgate'], hot as Workload, rate, rounds, seconds);
    report({ allowed, refusals, latency, rate }, passing, refusing.workloads);
  } finally {
    issuer.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function capacity(samples: Samples, workload: Workload): number {
  const base = samples.get(BASE)?.get(workload.name) ?? [];
  return percentile(
    base.map(({ perSecond }) => perSecond),
    0.5,
  );
}

interface Measured {
  readonly allowed: Samples;
  readonly refusals: Samples;
  readonly latency: ReadonlyMap<string, Latency>;
  readonly rate: number;
}

function report({ allowed, refusals, latency, rate }: Measured, passing: Workload[], refused: Workload[]): void {
  const machine = `${cpus().length} cores, Node ${process.version}, ${generator} with 32 connections`;
  const takenOn = new Date().toISOString().slice(0, 10);
  const [gate, refusal] = [rowsOf(allowed, passing), rowsOf(refusals, refused)];
  console.log(`${takenOn}, ${machine}, ${rounds} rounds of ${seconds} s\n`);
  console.log(`${markdown(gate, passing)}\n\n${markdown(refusal, refused)}\n`);
  const latencies = [...latency].map(([name, { p50Ms, p99Ms, delayP99Ms }]) => [
    LABELS[name] ?? name,
    ...[p50Ms, p99Ms, delayP99Ms].map(round),
  ]);
  console.log(table([`${rate} requests/s`, 'p50 ms', 'p99 ms', 'event loop delay p99 ms'], latencies));

  const results = join(__dirname, '../results');
  mkdirSync(results, { recursive: true });
  const document = {
    takenOn,
    machine,
    rounds,
    seconds,
    gate,
    refusal,
    halfLoad: { rate, ...Object.fromEntries(latency) },
  };
  writeFileSync(join(results, 'gate.json'), `${JSON.stringify(document, undefined, 2)}\n`);
  const bars = gate.filter(({ contender }) => contender !== BASE);
  const chart = barChart(
    'Requests per second, as a share of bare Express',
    passing.map(({ name }) => name),
    bars.map(({ contender, cells }) => ({
      label: (LABELS[contender] ?? contender).replaceAll('*', ''),
      shares: passing.map(({ name }) => cells[name]?.share ?? 0),
    })),
  );
  writeFileSync(join(__dirname, '../../docs/gate.svg'), chart);
}

function rowsOf(samples: Samples, workloads: readonly Workload[]): readonly Row[] {
  return [...samples.keys()].map((contender) => ({
    contender,
    cells: Object.fromEntries(workloads.map(({ name }) => [name, cellOf(samples, contender, name)])),
  }));
}

/** Share of bare Express (lowest and highest round), CPU time per request. */
function markdown(rows: readonly Row[], workloads: readonly Workload[]): string {
  const percent = (share: number): number => Math.round(share * 100);
  const cell = ({ share, lowest, highest, cpuUs }: Cell): string =>
    `${percent(share)}% (${percent(lowest)}-${percent(highest)}), ${Math.round(cpuUs)} us`;
  return table(
    ['', ...workloads.map(({ name }) => name)],
    rows.map(({ contender, cells }) => [LABELS[contender] ?? contender, ...Object.values(cells).map(cell)]),
  );
}

void main();
