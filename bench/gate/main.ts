/**
 * What a gate costs: Tillgate and its alternatives, each as a share of bare Express. All of them run at the same time and
 * are measured in short windows by turns, so that other work on the machine affects each of them alike.
 * `npm run bench -- --rounds 15 --seconds 1 --only tillgate,jose`; `--workload new --connections 256 --algorithm ES256` looks
 * at one column under other conditions, `--workload half` at the latency at half load. A run without these three writes
 * bench/results/gate.json and docs/gate.svg.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { round, table } from '../stats';
import { barChart } from './chart';
import { BASE, Field, spread } from './rounds';
import type { Round, Spread } from './rounds';
import { ALGORITHMS, startIssuer } from './tokens';
import { WORKLOAD_NAMES, writeWorkload } from './workloads';

const LABELS: Readonly<Record<string, string>> = {
  bare: 'bare Express',
  'two-noops': 'two empty middlewares',
  tillgate: '**Tillgate**',
  'fast-jwt': 'fast-jwt with its cache, by hand',
  jose: 'jose, by hand',
  'express-oauth2-jwt-bearer': 'express-oauth2-jwt-bearer',
  'passport-by-hand': 'passport-http-bearer + jsonwebtoken + jwks-rsa, by hand',
  'same-modules': "two empty middlewares, Tillgate's modules loaded",
};
/** Measured only by name. */
const EXPLAINS = 'same-modules';

/** The least share of bare Express that Tillgate should leave. */
const AIMS = { 'one known token': 0.9, '1,000 known tokens': 0.88, 'new tokens': 0.62 };
/** The largest ratio of its p99 at half load to that of bare Express. */
const MOST_P99 = 1.15;
/** A contender that cannot keep up at half load has a queue, and no latency worth comparing. */
const KEEPS_UP = 0.6;
/** Long enough for some collections of garbage in each window. */
const LATENCY_SECONDS = 4;
/** The least ratio to the others that it should reach with new tokens. */
const AHEAD = { of: ['fast-jwt', 'jose'], with: 'new tokens', by: 1.15 };

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '15' },
    seconds: { type: 'string', default: '1' },
    only: {
      type: 'string',
      default: Object.keys(LABELS)
        .filter((name) => name !== EXPLAINS)
        .join(),
    },
    workload: { type: 'string' },
    connections: { type: 'string', default: '32' },
    pipelining: { type: 'string', default: '1' },
    algorithm: { type: 'string', default: 'RS256' },
  },
});
const algorithm = ALGORITHMS.find((name) => name === values.algorithm) ?? 'RS256';
const sending = { connections: Number(values.connections), pipelining: Number(values.pipelining) };
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
  const issuer = await startIssuer(algorithm);
  const field = new Field(issuer, names, sending);
  try {
    await field.start();
    const one = await writeWorkload('one', issuer, folder);
    const columns: Record<string, Round[]> = {};
    for (const which of WORKLOAD_NAMES) {
      const isWanted = values.workload === undefined || values.workload === which;
      // Half load is half of what bare Express reaches.
      if (!isWanted && !(values.workload === 'half' && which === 'one')) continue;
      const workload = which === 'one' ? one : await writeWorkload(which, issuer, folder);
      columns[workload.name] = await field.measure(workload, plan);
    }
    if (values.workload !== undefined && values.workload !== 'half')
      return console.log([heading(), ...throughputTables(columns)].join('\n\n'));
    const known = columns[one.name] ?? [];
    const rate = Math.round(spread(known, BASE, 'perSecond').median / 2);
    const only = names.filter((name) => spread(known, name, 'perSecond', true).median > KEEPS_UP);
    const halfLoad = await field.measure(one, { rounds: plan.rounds, seconds: LATENCY_SECONDS, rate, only });
    if (values.workload === 'half') console.log([heading(), ...latencyTable(rate, halfLoad)].join('\n\n'));
    else report({ columns, rate, halfLoad });
  } finally {
    await field.stop();
    issuer.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function heading(): string {
  const { connections, pipelining } = sending;
  return (
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} cores, Node ${process.version}, ${algorithm}, autocannon ` +
    `with ${connections} connections${pipelining > 1 ? `, ${pipelining} requests pipelined on each` : ''}, ${plan.rounds} ` +
    `rounds of ${plan.seconds} s. Median, in parentheses the middle half of the rounds.`
  );
}

type Columns = Measured['columns'];

/** Share of bare Express, of one contender in each column. */
function sharesOf(columns: Columns, name: string): Spread[] {
  return Object.values(columns).map((rounds) => spread(rounds, name, 'perSecond', true));
}

function throughputTables(columns: Columns): string[] {
  const throughput = table(
    ['requests per second, share of bare Express', ...Object.keys(columns)],
    names.map((name) => [LABELS[name] ?? name, ...sharesOf(columns, name).map(percents)]),
  );
  const cost = table(
    ['CPU time per request, us', ...Object.keys(columns)],
    names.map((name) => [
      LABELS[name] ?? name,
      ...Object.values(columns).map((rounds) => ranged(spread(rounds, name, 'cpuUs'))),
    ]),
  );
  return [throughput, cost];
}

/** The table, and whether the aim is met. */
function latencyTable(rate: number, halfLoad: readonly Round[]): string[] {
  const cells = table(
    [
      `one known token, ${rate} requests/s, windows of ${LATENCY_SECONDS} s`,
      'p50 ms',
      'p99 ms',
      'event loop delay p99 ms',
      'p99, share of bare Express',
    ],
    Object.keys(halfLoad[0] ?? {}).map((name) => [
      LABELS[name] ?? name,
      ...(['p50Ms', 'p99Ms', 'delayP99Ms'] as const).map((figure) => ranged(spread(halfLoad, name, figure), 1)),
      percents(spread(halfLoad, name, 'p99Ms', true)),
    ]),
  );
  if (!names.includes('tillgate')) return [cells];
  const p99 = spread(halfLoad, 'tillgate', 'p99Ms', true);
  const verdict = p99.median <= MOST_P99 ? 'met' : 'missed';
  return [cells, `- p99 at half load: aim at most ${MOST_P99} times bare Express, ${verdict} with ${ranged(p99, 2)}`];
}

function report({ columns, rate, halfLoad }: Measured): void {
  console.log(
    [heading(), ...throughputTables(columns), ...latencyTable(rate, halfLoad), ...aims(columns)].join('\n\n'),
  );
  save({ heading: heading(), ...plan, columns, rate, halfLoad });
  drawChart(columns);
}

function aims(columns: Columns): string[] {
  if (!names.includes('tillgate')) return [];
  const lines = Object.entries(AIMS).map(([name, aim]) => {
    const share = spread(columns[name] ?? [], 'tillgate', 'perSecond', true);
    return `- ${name}: aim ${percent(aim)}, ${share.median >= aim ? 'met' : 'missed'} with ${percents(share)}`;
  });
  for (const other of AHEAD.of.filter((name) => names.includes(name))) {
    const ratio = spread(columns[AHEAD.with] ?? [], 'tillgate', 'perSecond', other);
    const verdict = ratio.median >= AHEAD.by ? 'met' : 'missed';
    lines.push(`- ${AHEAD.with}: aim ${AHEAD.by} times ${other}, ${verdict} with ${ranged(ratio, 2)}`);
  }
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

function drawChart(columns: Columns): void {
  const groups = names.filter((name) => name !== BASE);
  const chart = barChart(
    'Requests per second as a share of bare Express: median, and the middle half of the rounds',
    Object.keys(columns),
    groups.map((name) => ({ label: (LABELS[name] ?? name).replaceAll('*', ''), shares: sharesOf(columns, name) })),
  );
  writeFileSync(join(__dirname, '../../docs/gate.svg'), chart);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
