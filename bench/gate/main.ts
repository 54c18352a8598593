/**
 * What a gate costs: Tillgate and its alternatives, each as a share of bare Express. All of them run at the same time and
 * are measured in short windows by turns, so that other work on the machine affects each of them alike.
 * `npm run bench -- --rounds 15 --seconds 1`; `--only tillgate,jose` and `--columns ES256` select by a part of the name,
 * `--threads 2` gives the servers the core of the load generator too, `--half` measures latency and time on the event loop
 * at half load. A run of everything on one thread writes bench/results/gate.json and docs/gate.svg.
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
import { COLUMNS, writeHeaders } from './workloads';
import type { Column } from './workloads';

const LABELS: Readonly<Record<string, string>> = {
  bare: 'bare Express',
  'two-noops': 'two empty middlewares',
  tillgate: '**Tillgate**',
  'fast-jwt': 'fast-jwt with its cache, by hand',
  jose: 'jose, by hand',
  'express-oauth2-jwt-bearer': 'express-oauth2-jwt-bearer',
  'passport-by-hand': 'passport-http-bearer + jsonwebtoken + jwks-rsa, by hand',
  'tillgate-telemetry': 'Tillgate, metrics of OpenTelemetry',
  'same-modules': "two empty middlewares, Tillgate's modules loaded",
};
/** Measured only by name. */
const BY_NAME: readonly string[] = ['tillgate-telemetry', 'same-modules'];
const WITHOUT_DPOP: readonly string[] = ['two-noops', 'fast-jwt', 'passport-by-hand'];
/** jsonwebtoken knows no EdDSA. */
const WITHOUT_EDDSA: readonly string[] = ['passport-by-hand'];

/** A contender that cannot keep up at half load has a queue, and no latency worth comparing. */
const KEEPS_UP = 1.2;
/** Long enough for some collections of garbage in each window. */
const LATENCY_SECONDS = 4;
/** The columns of the chart. */
const CHARTED = 3;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '1' },
    only: { type: 'string' },
    columns: { type: 'string', default: '' },
    threads: { type: 'string', default: '1' },
    half: { type: 'boolean', default: false },
    connections: { type: 'string', default: '32' },
    pipelining: { type: 'string', default: '1' },
  },
});
const threads = values.threads === '2' ? 2 : 1;
const sending = { connections: Number(values.connections), pipelining: Number(values.pipelining), threads } as const;
const plan = { rounds: Number(values.rounds), seconds: Number(values.seconds) };
const names =
  values.only === undefined
    ? Object.keys(LABELS).filter((name) => !BY_NAME.includes(name))
    : [...new Set([BASE, ...values.only.split(',')])];

/** The rounds of each column, by its name. */
type Rounds = Readonly<Record<string, readonly Round[]>>;

/** The rounds of one column as fast as possible, and at a constant rate. */
interface Measured {
  readonly full: readonly Round[];
  readonly half?: { readonly rate: number; readonly rounds: readonly Round[] };
}

async function main(): Promise<void> {
  const columns: Record<string, readonly Round[]> = {};
  const halfLoad: Record<string, Measured['half']> = {};
  const latencies: string[] = [];
  for (const column of COLUMNS.filter(({ name }) => name.includes(values.columns))) {
    const { full, half } = await measure(column);
    columns[column.name] = full;
    if (!half) continue;
    halfLoad[column.name] = half;
    latencies.push(latencyTable(column.name, half.rate, half.rounds));
  }
  console.log([heading(), ...throughputTables(columns), ...latencies].join('\n\n'));
  if (values.only !== undefined || values.columns !== '' || threads !== 1) return;
  save({ heading: heading(), ...plan, columns, halfLoad });
  drawChart(Object.fromEntries(Object.entries(columns).slice(0, CHARTED)));
}

async function measure(column: Column): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-bench-'));
  const issuer = await startIssuer(column.algorithm, column.dpop);
  const unable = [...(column.dpop ? WITHOUT_DPOP : []), ...(column.algorithm === 'EdDSA' ? WITHOUT_EDDSA : [])];
  const able = names.filter((name) => !unable.includes(name));
  const field = new Field(issuer, able, column, await writeHeaders(column, issuer, folder), sending);
  try {
    await field.start();
    const full = await field.measure(plan);
    if (!values.half && column !== COLUMNS[0]) return { full };
    const reference = able.includes('tillgate') ? 'tillgate' : BASE;
    const rate = Math.round(spread(full, reference, 'perSecond').median / 2);
    const only = able.filter((name) => spread(full, name, 'perSecond').median > KEEPS_UP * rate);
    return { full, half: { rate, rounds: await field.measure({ ...plan, seconds: LATENCY_SECONDS, rate, only }) } };
  } finally {
    await field.stop();
    issuer.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function heading(): string {
  const { connections, pipelining } = sending;
  const pipelined = pipelining > 1 ? `, ${pipelining} requests pipelined on each` : '';
  return (
    `${new Date().toISOString().slice(0, 10)}, ${cpus().length} cores of which the servers have ${threads}, ` +
    `Node ${process.version}, autocannon with ${connections} connections${pipelined}, ${plan.rounds} rounds of ` +
    `${plan.seconds} s. Median, in parentheses the middle half of the rounds.`
  );
}

/** A row for each contender, a cell for each column that it took part in. */
function rowsOf(columns: Rounds, cell: (rounds: readonly Round[], name: string) => string): string[][] {
  return names.map((name) => [
    LABELS[name] ?? name,
    ...Object.values(columns).map((rounds) => (rounds[0]?.[name] ? cell(rounds, name) : '')),
  ]);
}

function throughputTables(columns: Rounds): string[] {
  const heads = Object.keys(columns);
  return [
    table(
      ['requests per second, share of bare Express', ...heads],
      rowsOf(columns, (rounds, name) => percents(spread(rounds, name, 'perSecond', true))),
    ),
    table(
      ['CPU time per request, us', ...heads],
      rowsOf(columns, (rounds, name) => ranged(spread(rounds, name, 'cpuUs'))),
    ),
  ];
}

function latencyTable(column: string, rate: number, rounds: readonly Round[]): string {
  return table(
    [
      `${column}, ${rate} requests/s, windows of ${LATENCY_SECONDS} s`,
      'p50 ms',
      'p99 ms',
      'p99, share of bare Express',
      'on the event loop per request, us',
      'event loop delay p99 ms',
    ],
    Object.keys(rounds[0] ?? {}).map((name) => [
      LABELS[name] ?? name,
      ...(['p50Ms', 'p99Ms'] as const).map((figure) => ranged(spread(rounds, name, figure), 1)),
      percents(spread(rounds, name, 'p99Ms', true)),
      ranged(spread(rounds, name, 'loopUs')),
      ranged(spread(rounds, name, 'delayP99Ms'), 1),
    ]),
  );
}

function percents({ median, lower, upper }: Spread): string {
  return `${Math.round(median * 100)}% (${Math.round(lower * 100)}-${Math.round(upper * 100)})`;
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

function drawChart(columns: Rounds): void {
  const groups = names.filter((name) => name !== BASE);
  const sharesOf = (name: string): Spread[] =>
    Object.values(columns).map((rounds) => spread(rounds, name, 'perSecond', true));
  const chart = barChart(
    'Requests per second as a share of bare Express: median, and the middle half of the rounds',
    Object.keys(columns),
    groups.map((name) => ({ label: (LABELS[name] ?? name).replaceAll('*', ''), shares: sharesOf(name) })),
  );
  writeFileSync(join(__dirname, '../../docs/gate.svg'), chart);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
