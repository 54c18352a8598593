import { table } from '../stats';
import type { ColdStart, Point } from './sizing';

type Quantity = 'commands' | 'bytes' | 'cpu';

/** Work per second of a store: a sum of costs, none of them negative. */
export interface Model {
  /** What one read and the pause after it take, in s: a process reads at most once in that time. */
  readonly readSpacing: number;
  /** What one write takes, in s: changes that come in that time share the next one. */
  readonly writeSpacing: number;
  readonly costs: Readonly<Record<Quantity, readonly number[]>>;
}

const QUANTITIES: readonly Quantity[] = ['commands', 'bytes', 'cpu'];

type Spacings = Pick<Model, 'readSpacing' | 'writeSpacing'>;

/** Always; per idle process; per write; per change; per read; per change and process. */
function termsOf(processes: number, changes: number, { readSpacing, writeSpacing }: Spacings): readonly number[] {
  const writes = changes / (1 + changes * writeSpacing);
  const reads = changes / (1 + changes * readSpacing);
  return [1, processes, writes, changes, processes * reads, processes * changes];
}

const SPACINGS = Array.from({ length: 16 }, (_, index) => 0.0005 * 1.5 ** index);

/** Below this share of idle CPU time the readers waited for each other: the point measures the machine. */
const FULL = 0.1;

/** Fits the costs to the points by least squares of the relative deviations. */
export function fitModel(all: readonly Point[]): Model {
  const points = all.filter(({ idle }) => idle >= FULL);
  let best: (Model & { readonly error: number }) | undefined;
  for (const readSpacing of SPACINGS) {
    for (const writeSpacing of SPACINGS) {
      const spacings = { readSpacing, writeSpacing };
      const terms = points.map(({ processes, changes }) => termsOf(processes, changes, spacings));
      const fits = QUANTITIES.map((quantity) => {
        return fit(terms, points, quantity);
      });
      const error = fits.reduce((sum, each) => sum + each.error, 0);
      const [commands = [], bytes = [], cpu = []] = fits.map(({ costs }) => costs);
      if (!best || error < best.error) best = { ...spacings, costs: { commands, bytes, cpu }, error };
    }
  }
  if (!best || points.length === 0) throw new Error('no points to fit a model to: the machine was full at each');
  return best;
}

/** What the model says about a size. */
export function predict(model: Model, processes: number, changes: number): Record<Quantity, number> {
  const terms = termsOf(processes, changes, model);
  const of = (quantity: Quantity): number => dot(model.costs[quantity], terms);
  return { commands: of('commands'), bytes: of('bytes'), cpu: of('cpu') };
}

const PASSES = 400;
const IDLE_WEIGHT = 10;

/** Coordinate descent: each cost in turn becomes the best one that is not negative. */
function fit(
  terms: readonly (readonly number[])[],
  points: readonly Point[],
  quantity: Quantity,
): { costs: number[]; error: number } {
  const values = points.map((point) => point[quantity]);
  // A point of next to nothing must not outweigh the others; the idle one is long, and alone sees what is rare.
  const least = Math.max(...values) / 200;
  const weights = points.map((point) => (point.changes === 0 ? IDLE_WEIGHT : 1) / (point[quantity] + least));
  const rows = terms.map((row, index) => row.map((term) => term * (weights[index] as number)));
  const costs = (rows[0] ?? []).map(() => 0);
  const left = values.map((value, index) => value * (weights[index] as number));
  for (let pass = 0; pass < PASSES; pass++) {
    for (const [at, old] of costs.entries()) {
      const squares = rows.reduce((sum, row) => sum + (row[at] as number) ** 2, 0);
      const gain = rows.reduce((sum, row, index) => sum + (row[at] as number) * (left[index] as number), 0);
      const cost = squares === 0 ? 0 : Math.max(0, old + gain / squares);
      rows.forEach((row, index) => (left[index] = (left[index] as number) - (cost - old) * (row[at] as number)));
      costs[at] = cost;
    }
  }
  return { costs, error: dot(left, left) };
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
}

const SIZES = [10, 1_000, 100_000];
const RATES = [1, 10, 1_000];
/** Of a core; above it waiting times grow. */
const BUSY = 0.7;

/** Three tables: the measured points next to the model's, the model's costs, and what it says about larger sizes. */
export function reportOf(name: string, points: readonly Point[], cold: ColdStart): string {
  const model = fitModel(points);
  return [
    `### ${name}: measured, and the model's deviation`,
    measuredTable(points, model),
    `### ${name}: costs that the model has found`,
    costsTable(model),
    coldLine(cold),
    `### ${name}: modelled`,
    modelledTable(model),
    limitsLine(model),
  ].join('\n\n');
}

function measuredTable(points: readonly Point[], model: Model): string {
  const rows = points.map((point) => {
    const said = predict(model, point.processes, point.changes);
    const cell = (quantity: Quantity, shown: string): string => {
      const deviation = Math.round((said[quantity] / point[quantity] - 1) * 100);
      return Number.isFinite(deviation) && point.idle >= FULL
        ? `${shown} (${deviation > 0 ? '+' : ''}${deviation}%)`
        : shown;
    };
    const cells = [
      cell('commands', short(point.commands)),
      cell('bytes', short(point.bytes / 1000)),
      cell('cpu', short(point.cpu * 100)),
    ];
    const idle = `${Math.round(point.idle * 100)}%`;
    return [point.processes, short(point.changes), ...cells, ...[point.p50, point.p99].map(short), idle];
  });
  return table(
    ['processes', 'changes/s', 'commands/s', 'kB/s', 'CPU, % of a core', 'p50, ms', 'p99, ms', 'idle'],
    rows,
  );
}

function costsTable({ costs, readSpacing, writeSpacing }: Model): string {
  const kinds = [
    'always',
    'per process, idle',
    `per write (at most one in ${short(writeSpacing * 1000)} ms)`,
    'per change',
    `per read of a process (at most one in ${short(readSpacing * 1000)} ms)`,
    'per change and process',
  ];
  const rows = kinds.map((kind, at) => [
    kind,
    short(costs.commands[at] as number),
    short(costs.bytes[at] as number),
    short((costs.cpu[at] as number) * 1e6),
  ]);
  return table(['', 'commands', 'bytes', 'CPU, µs'], rows);
}

function coldLine({ floors, bytes, cpuSeconds, connections }: ColdStart): string {
  const perFloor = `${short(bytes / floors)} bytes and ${short((cpuSeconds / floors) * 1e6)} µs of CPU`;
  return `A process that starts costs ${perFloor} per floor (measured with ${floors}), and opens ${connections} connections.`;
}

function modelledTable(model: Model): string {
  const rows = SIZES.flatMap((processes) =>
    RATES.map((changes) => {
      const { commands, bytes, cpu } = predict(model, processes, changes);
      return [
        processes.toLocaleString('en'),
        changes.toLocaleString('en'),
        short(commands),
        short(bytes / 1e6),
        short(cpu),
      ];
    }),
  );
  return table(['processes', 'changes/s', 'commands/s', 'MB/s', 'cores of the store'], rows);
}

function limitsLine(model: Model): string {
  const limits = RATES.map((changes) => {
    let processes = 1;
    while (predict(model, processes * 1.02, changes).cpu < BUSY && processes < 1e7) processes *= 1.02;
    return `${short(processes)} processes at ${changes.toLocaleString('en')} changes/s`;
  });
  return `${BUSY * 100}% of one core: ${limits.join(', ')}.`;
}

/** Three significant digits. */
function short(value: number): string {
  if (!Number.isFinite(value)) return '';
  const rounded = Number(value.toPrecision(value >= 100 ? 3 : 2));
  return rounded.toLocaleString('en', { maximumSignificantDigits: 3 });
}
