/**
 * What a gate costs: Tillgate and its alternatives, each as a share of bare Express. All of them run at the same time and
 * are measured in short windows by turns, so that other work on the machine affects each of them alike.
 * `npm run bench -- --rounds 12 --seconds 1 --only tillgate,jose`. Writes bench/results/gate.json and docs/gate.svg.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { round, table } from '../stats';
import { barChart } from './chart';
import { BASE, Field, spread } from './rounds';
import type { Round, Spread } from './rounds';
import { startIssuer } from './tokens';
import { writeWorkloads } from './workloads';

const LABELS: Readonly<Record<string, string>> = {
  bare: 'bare Express',
  'two-noops': 'two empty middlewares',
  tillgate: '**Tillgate**',
  'fast-jwt': 'fast-jwt with its cache, by hand',
  jose: 'jose, by hand',
  'express-oauth2-jwt-bearer': 'express-oauth2-jwt-bearer',
  'passport-by-hand': 'passport-http-bearer + jsonwebtoken + jwks-rsa, by hand',
};

/** The least share of bare Express that Tillgate should leave. */
const AIMS = { 'one known token': 0.85, '1,000 known tokens': 0.85, 'new tokens': 0.6 };

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '12' },
    seconds: { type: 'string', default: '1' },
    only: { type: 'string', default: Object.keys(LABELS).join() },
  },
});
const plan = { rounds: Number(values.rounds), seconds: Number(values.seconds) };
const names = [...new Set([BASE, ...values.only.split(',')])];

/** The rounds of each workload, and those of one known token at a fixed rate. */
interface Measured {
  readonly columns: Readonly<Record<string, readonly Round[]>>;
  readonly rate: number;
  readonly halfLoad: readonly Round[];
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  const issuer = await startIssuer();
  const field = new Field(issuer, names);
  try {
    await field.start();
    const workloads = await writeWorkloads(issuer, folder);
    const columns: Record<string, Round[]> = {};
    for (const workload of Object.values(workloads)) columns[workload.name] = await field.measure(workload, plan);
    const capacity = spread(columns[workloads.one.name] ?? [], BASE, 'perSecond').median;
    const rate = Math.round(capacity / 2);
    report({ columns, rate, halfLoad: await field.measure(workloads.one, { ...plan, rate }) });
  } finally {
    await field.stop();
    issuer.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function report({ columns, rate, halfLoad }: Measured): void {
  const shares = (name: string): Spread[] =>
    Object.values(columns).map((rounds) => spread(rounds, name, 'perSecond', true));
  const heading =
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} cores, Node ${process.version}, autocannon with 32 ` +
    `connections, ${plan.rounds} rounds of ${plan.seconds} s. Median, in parentheses the middle half of the rounds.`;
  const throughput = table(
    ['requests per second, share of bare Express', ...Object.keys(columns)],
    names.map((name) => [LABELS[name] ?? name, ...shares(name).map(percents)]),
  );
  const cost = table(
    ['CPU time per request, us', ...Object.keys(columns)],
    names.map((name) => [
      LABELS[name] ?? name,
      ...Object.values(columns).map((rounds) => ranged(spread(rounds, name, 'cpuUs'))),
    ]),
  );
  // A contender that cannot keep up has a queue, and no latency worth comparing.
  const keepsUp = names.filter((name) => spread(halfLoad, name, 'perSecond').median > 0.9 * rate);
  const latency = table(
    [
      `one known token, ${rate} requests/s`,
      'p50 ms',
      'p99 ms',
      'event loop delay p99 ms',
      'p99, share of bare Express',
    ],
    keepsUp.map((name) => [
      LABELS[name] ?? name,
      ...(['p50Ms', 'p99Ms', 'delayP99Ms'] as const).map((figure) => ranged(spread(halfLoad, name, figure), 1)),
      percents(spread(halfLoad, name, 'p99Ms', true)),
    ]),
  );
  console.log([heading, throughput, cost, latency, ...aims(columns)].join('\n\n'));
  save({ heading, ...plan, columns, rate, halfLoad });
  drawChart(columns, shares);
}

function aims(columns: Measured['columns']): string[] {
  if (!names.includes('tillgate')) return [];
  const lines = Object.entries(AIMS).map(([name, aim]) => {
    const share = spread(columns[name] ?? [], 'tillgate', 'perSecond', true);
    return `- ${name}: aim ${percent(aim)}, ${share.median >= aim ? 'met' : 'missed'} with ${percents(share)}`;
  });
  return [lines.join('\n')];
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

function percents({ median, lower, upper }: Spread): string {
  return `${percent(median)} (${Math.round(lower * 100)}-${Math.round(upper * 100)})`;
}

function ranged({ median, lower, upper }: Spread, digits = 0): string {
  return `${median.toFixed(digits)} (${lower.toFixed(digits)}-${upper.toFixed(digits)})`;
}

function save(document: object): void {
  const results = join(__dirname, '../results');
  mkdirSync(results, { recursive: true });
  const rounded = (_key: string, value: unknown): unknown => (typeof value === 'number' ? round(value) : value);
  writeFileSync(join(results, 'gate.json'), `${JSON.stringify(document, rounded, 1)}\n`);
}

function drawChart(columns: Measured['columns'], shares: (name: string) => Spread[]): void {
  const groups = names.filter((name) => name !== BASE);
  const chart = barChart(
    'Requests per second as a share of bare Express: median, and the middle half of the rounds',
    Object.keys(columns),
    groups.map((name) => ({ label: (LABELS[name] ?? name).replaceAll('*', ''), shares: shares(name) })),
  );
  writeFileSync(join(__dirname, '../../docs/gate.svg'), chart);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
