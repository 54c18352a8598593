import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { median, percentile } from '../stats';
import { startEngine } from './engines';
import type { Engine } from './engines';
import { preciseNow } from './messages';
import type { FromReaders, ToReaders } from './messages';
import type { Work } from './meters';
import { reportOf } from './model';

export interface SizingOptions {
  readonly engines: readonly string[];
  /** Most processes. */
  readonly processes: number;
  readonly floors: number;
  /** Most changes per second of the regular points. */
  readonly changes: number;
  /** How long each point is measured. */
  readonly seconds: number;
}

/** Work of the store per second, at so many processes and changes per second. */
export interface Point {
  readonly processes: number;
  readonly changes: number;
  readonly commands: number;
  readonly bytes: number;
  readonly cpu: number;
  /** ms from `publish` resolved until the last process refuses. */
  readonly p50: number;
  readonly p99: number;
  /** Share of the machine's CPU time that was left. */
  readonly idle: number;
}

/** What one process costs the store when it starts. */
export interface ColdStart {
  readonly floors: number;
  readonly bytes: number;
  readonly cpuSeconds: number;
  readonly connections: number;
}

/** Operating-system processes that the readers share: the machine has 2 cores. */
const HOSTS = 2;
const SETTLE_MS = 1_500;
/** Everything that a process does without changes comes at least once in a minute. */
const IDLE_SECONDS = 65;
/** Changes per second whose way is timed; the others only load the store. */
const TIMED_PER_SECOND = 20;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Measures the work of each store at several sizes, and fits a model to it. */
export async function sizingTables(options: SizingOptions): Promise<string> {
  const reports = [];
  for (const name of options.engines) {
    const engine = await startEngine(name, options.floors);
    const cold = await measureColdStart(engine, options.floors);
    const points = [];
    const { processes: most, changes } = options;
    for (const processes of [most / 8, most / 4, most / 2, most].map(Math.ceil)) {
      const readers = await startReaders(engine.url, processes);
      for (const rate of [changes / 50, changes / 5, changes])
        points.push(await measurePoint(engine, readers, rate, options.seconds));
      if (processes === most) points.push(await measurePoint(engine, readers, 0, IDLE_SECONDS));
      // More than one process can publish at its ease: reads and writes of several changes become one.
      if (processes === most)
        for (const rate of [changes * 4, changes * 20])
          points.push(await measurePoint(engine, readers, rate, options.seconds));
      readers.stop();
    }
    await engine.stop();
    reports.push(reportOf(name, points, cold));
  }
  return reports.join('\n\n');
}

/** One process that starts, after another one has made the store's caches warm. */
async function measureColdStart(engine: Engine, floors: number): Promise<ColdStart> {
  (await startReaders(engine.url, 1)).stop();
  await pause(SETTLE_MS);
  const idle = await engine.meter();
  const before = await engine.meter();
  const readers = await startReaders(engine.url, 1);
  const after = await engine.meter();
  readers.stop();
  await pause(SETTLE_MS);
  const { bytes, cpuSeconds } = difference(idle, before, after);
  return { floors, bytes, cpuSeconds, connections: after.connections - before.connections };
}

async function measurePoint(engine: Engine, readers: Readers, rate: number, seconds: number): Promise<Point> {
  const clientIds = Array.from(
    { length: Math.ceil(rate * (seconds + 2)) },
    (_, index) => `sized-${readers.count}-${rate}-${index}`,
  );
  const generation = await engine.register(clientIds);
  await pause(SETTLE_MS);
  const latencies: Promise<number>[] = [];
  const every = Math.max(1, Math.round(rate / TIMED_PER_SECOND));
  const idle = await engine.meter();
  const before = await engine.meter();
  const cpuBefore = cpuTimes();
  const startedMs = performance.now();
  const sent: Promise<void>[] = [];
  while (performance.now() - startedMs < seconds * 1000) {
    const due = Math.min(clientIds.length, Math.floor(((performance.now() - startedMs) / 1000) * rate));
    for (let index = sent.length; index < due; index++) {
      const clientId = clientIds[index] as string;
      const isTimed = index % every === 0;
      const refused = isTimed ? readers.refused({ round: index, clientId, generation }) : undefined;
      const change = engine.change(clientId);
      sent.push(change);
      if (refused) latencies.push(change.then(async () => since(preciseNow(), refused)));
    }
    await pause(2);
  }
  const after = await engine.meter();
  const elapsed = (performance.now() - startedMs) / 1000;
  const cpuAfter = cpuTimes();
  await Promise.all(sent);
  const figures = await Promise.all(latencies);
  const { commands, bytes, cpuSeconds } = difference(idle, before, after);
  const point = {
    processes: readers.count,
    changes: sent.length / elapsed,
    commands: commands / elapsed,
    bytes: bytes / elapsed,
    cpu: cpuSeconds / elapsed,
    p50: median(figures),
    p99: percentile(figures, 0.99),
    idle: (cpuAfter.idle - cpuBefore.idle) / (cpuAfter.all - cpuBefore.all),
  };
  console.error(engine.name, JSON.stringify(point));
  return point;
}

/** Of all cores since the machine started, in ms. */
function cpuTimes(): { readonly idle: number; readonly all: number } {
  const times = cpus().map((cpu) => cpu.times);
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  return { idle: sum(times.map(({ idle }) => idle)), all: sum(times.map((each) => sum(Object.values(each)))) };
}

async function since(startedMs: number, ended: Promise<number>): Promise<number> {
  return Math.max(0, (await ended) - startedMs);
}

/** Without what the meter itself costs, which is what passed between its first two readings. */
function difference(idle: Work, before: Work, after: Work): Omit<Work, 'connections'> {
  const of = (name: keyof Work): number => Math.max(0, after[name] - 2 * before[name] + idle[name]);
  return { commands: of('commands'), bytes: of('bytes'), cpuSeconds: of('cpuSeconds') };
}

interface Readers {
  readonly count: number;
  /** Resolves with the time at which the last reader refused. */
  refused(change: ToReaders): Promise<number>;
  stop(): void;
}

async function startReaders(url: string, count: number): Promise<Readers> {
  const hosts = Math.min(HOSTS, count);
  const shares = Array.from({ length: hosts }, (_, host) => Math.floor((count + host) / hosts));
  const path = join(__dirname, 'sized-readers.ts');
  const children = shares.map((share) => fork(path, [url, String(share)], { execArgv: ['--import', 'tsx'] }));
  const stop = (): void => children.forEach((child) => child.kill());
  process.setMaxListeners(0).once('exit', stop);
  await Promise.all(children.map((child) => once(child, 'message')));
  return {
    count,
    async refused(change) {
      const times = await Promise.all(children.map((child) => refusedBy(child, change)));
      return Math.max(...times);
    },
    stop,
  };
}

function refusedBy(child: ChildProcess, change: ToReaders): Promise<number> {
  return new Promise((resolve) => {
    child.setMaxListeners(0).on('message', listen);
    function listen(message: FromReaders): void {
      if (!('round' in message) || message.round !== change.round) return;
      child.off('message', listen);
      resolve(message.at);
    }
    child.send(change);
  });
}
