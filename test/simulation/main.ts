import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { FAULTS } from './faults';
import { plant, ROOT } from './plant';
import { planOf } from './plan';
import { add, NOTHING, runWorlds, seedsFrom } from './run';
import type { Totals } from './run';
import { shrink } from './shrink';
import { loadSubject } from './subject';
import { World } from './world';

/*
 * `npm run simulate -- --seeds N [--from M]`: that many worlds, on all cores. `--seed N [--trace]`: one, and what happens in it.
 * `--planted`: searches for each planted fault in 2,000 worlds; `--planted-seeds`: runs the world that shows each.
 * `--write` puts the table into docs/maintainers/simulation.md.
 */

const PAGE = join(ROOT, 'docs/maintainers/simulation.md');
/** Worlds within which a planted fault has to be found. */
const SEARCHED_WORLDS = 2_000;
const WORLDS_PER_TASK = 50;

/** What a worker is asked: worlds of this code, or a planted fault. */
type Task = { readonly from: number; readonly to: number } | { readonly fault: number; readonly isSearch: boolean };

interface Found {
  readonly seed: number | undefined;
  readonly message: string;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string' },
      from: { type: 'string', default: '1' },
      seed: { type: 'string' },
      trace: { type: 'boolean', default: false },
      planted: { type: 'boolean', default: false },
      'planted-seeds': { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      worker: { type: 'boolean', default: false },
    },
  });
  if (values.worker) return work();
  if (values.seed !== undefined) return showWorld(Number(values.seed), values.trace);
  if (values.planted || values['planted-seeds']) await searchFaults(values.planted, values.write);
  if (values.seeds !== undefined) await searchWorlds(Number(values.from), Number(values.seeds), values.write);
}

async function showWorld(seed: number, isTraced: boolean): Promise<void> {
  const subject = await loadSubject(ROOT);
  const plan = planOf(seed);
  const { violation, simulatedMs, events } = await new World(plan, subject).run();
  console.log(
    `world ${seed}: ${events} events in ${simulatedMs / 1_000} s of its time; ${violation?.message ?? 'no promise is broken'}`,
  );
  const shown = violation ? await shrink(plan, subject) : plan;
  if (violation)
    console.log(
      `${shown.events.length} of its ${plan.events.length} planned events break it: ${JSON.stringify(shown.events)}`,
    );
  if (!isTraced) return;
  console.log(JSON.stringify(shown.setting));
  await new World(shown, subject, (line) => console.log(line)).run();
}

async function searchWorlds(from: number, count: number, isWritten: boolean): Promise<void> {
  const startedMs = Date.now();
  const last = from + count - 1;
  const tasks: Task[] = [];
  for (let first = from; first <= last; first += WORLDS_PER_TASK) {
    tasks.push({ from: first, to: Math.min(last, first + WORLDS_PER_TASK - 1) });
  }
  let totals = NOTHING;
  await distribute(tasks, (_task, answer) => {
    totals = add(totals, answer as Totals);
    if (totals.worlds % (20 * WORLDS_PER_TASK) === 0)
      console.error(`${totals.worlds} worlds, ${totals.broken.length} broken`);
  });
  const seconds = (Date.now() - startedMs) / 1_000;
  for (const { seed, message } of totals.broken) console.log(`BROKEN in world ${seed}: ${message}`);
  const row = [
    ...[totals.worlds, totals.events, totals.decisions].map((value) => value.toLocaleString('en')),
    ...[(totals.simulatedMs / 3_600_000).toFixed(0), seconds.toFixed(0), String(totals.broken.length)],
  ];
  report(
    'worlds',
    ['worlds', 'events', 'decisions', 'simulated hours', 'seconds', 'broken promises'],
    [row],
    isWritten,
  );
  if (totals.broken.length > 0) process.exitCode = 1;
}

async function searchFaults(isSearch: boolean, isWritten: boolean): Promise<void> {
  const rows = new Map<string, readonly string[]>();
  await distribute(
    FAULTS.map((_fault, fault) => ({ fault, isSearch })),
    (task, answer) => {
      const { name, file } = FAULTS['fault' in task ? task.fault : 0] as (typeof FAULTS)[number];
      const { seed, message } = answer as Found;
      console.error(`${seed ?? 'NOT FOUND'}: ${name}`);
      rows.set(name, [name, `\`${file}\``, String(seed ?? 'not found'), message.split(':')[0] as string]);
      if (seed === undefined) process.exitCode = 1;
    },
  );
  const sorted = FAULTS.flatMap(({ name }) => [rows.get(name) ?? []]);
  report('faults', ['planted fault', 'file', 'world', 'broken promise'], sorted, isWritten);
}

function report(
  section: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  isWritten: boolean,
): void {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const table = [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
  console.log(table);
  if (!isWritten) return;
  const begin = `<!-- ${section}: written by npm run simulate -->`;
  const [before = '', after = ''] = readFileSync(PAGE, 'utf8').split(begin);
  writeFileSync(PAGE, `${before}${begin}\n\n${table}\n\n${after.slice(after.indexOf('<!-- end -->'))}`);
}

/** Gives tasks to one worker per core. */
async function distribute(tasks: readonly Task[], answered: (task: Task, answer: unknown) => void): Promise<void> {
  const left = [...tasks];
  const serve = async (): Promise<void> => {
    const worker = fork(__filename, ['--worker']);
    for (let task = left.shift(); task; task = left.shift()) answered(task, await askWorker(worker, task));
    worker.disconnect();
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), tasks.length) }, serve));
}

function askWorker(worker: ChildProcess, task: Task): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const exited = (code: number | null): void => reject(new Error(`a worker ended with ${code}`));
    worker.once('exit', exited);
    worker.once('message', (answer) => {
      worker.off('exit', exited);
      resolve(answer);
    });
    worker.send(task);
  });
}

function work(): void {
  process.on('message', (task: Task) => {
    const answer = 'fault' in task ? findFault(task.fault, task.isSearch) : runTask(task);
    answer.then(
      (value) => process.send?.(value),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
}

async function runTask({ from, to }: { readonly from: number; readonly to: number }): Promise<Totals> {
  return runWorlds(seedsFrom(from, to), await loadSubject(ROOT));
}

async function findFault(index: number, isSearch: boolean): Promise<Found> {
  const fault = FAULTS[index] as (typeof FAULTS)[number];
  const planted = plant(fault, `${process.pid}-${index}`);
  try {
    const seeds = isSearch ? seedsFrom(1, SEARCHED_WORLDS) : [fault.seed];
    const { broken } = await runWorlds(seeds, await loadSubject(planted.root), (totals) => totals.broken.length > 0);
    return { seed: broken[0]?.seed, message: broken[0]?.message ?? '' };
  } finally {
    planted.remove();
  }
}

void main();
