import { execFileSync } from 'node:child_process';
import { median } from '../stats';

/** What a fresh process needed to run a piece of code, in ms: medians. */
export interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** Runs each piece of CommonJS code in `rounds` fresh processes, in turns. */
export function costs<Name extends string>(code: Readonly<Record<Name, string>>, rounds: number): Record<Name, Cost> {
  const names = Object.keys(code) as Name[];
  const runs = Object.fromEntries(names.map((name) => [name, [] as Cost[]])) as Record<Name, Cost[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) runs[name].push(costOnce(code[name]));
  }
  const medians = names.map((name) => [name, medianOf(runs[name])]);
  return Object.fromEntries(medians) as Record<Name, Cost>;
}

function costOnce(code: string): Cost {
  const measured = `
    const startedMs = performance.now(), before = process.cpuUsage();
    ${code};
    const { user, system } = process.cpuUsage(before);
    console.log(JSON.stringify({ wallMs: performance.now() - startedMs, cpuMs: (user + system) / 1000 }));`;
  return JSON.parse(execFileSync(process.execPath, ['-e', measured], { encoding: 'utf8' })) as Cost;
}

function medianOf(runs: readonly Cost[]): Cost {
  return { wallMs: median(runs.map(({ wallMs }) => wallMs)), cpuMs: median(runs.map(({ cpuMs }) => cpuMs)) };
}
