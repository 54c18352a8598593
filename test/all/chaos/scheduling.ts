import { readFileSync } from 'node:fs';
import type { Ledger } from './ledger';

/** A process whose scheduling is watched. */
export interface Watched {
  readonly name: string;
  readonly pid: number;
  /** The gate that it is; absent: every gate needs it. */
  readonly gate?: string | undefined;
}

const EVERY_MS = 250;

/**
 * Writes into the ledger for how long processes could run and did not, because the machine gave them no time. The kernel counts it,
 * outside of them: a process that blocks itself is not excused. The driver carries the wires, so all of its event loop's delays count.
 */
export function watchScheduling(watched: () => readonly Watched[], ledger: Ledger): { close(): void } {
  let waits = new Map<number, number>();
  let before = performance.now();
  const timer = setInterval(() => {
    const [now, toMs] = [performance.now(), Date.now()];
    const add = (delayMs: number, process: string, gate?: string): void => {
      const period = { fromMs: toMs - (now - before), toMs };
      if (delayMs >= 1) ledger.add({ kind: 'delay', process, ...(gate && { gate }), ...period, delayMs });
    };
    add(now - before - EVERY_MS, 'driver');
    const next = new Map<number, number>();
    for (const { name, pid, gate } of watched()) {
      const waitedMs = waitOf(pid);
      if (waitedMs === undefined) continue;
      next.set(pid, waitedMs);
      add(waitedMs - (waits.get(pid) ?? waitedMs), name, gate);
    }
    [waits, before] = [next, now];
  }, EVERY_MS);
  return { close: () => clearInterval(timer) };
}

/** How long the main thread of a process has waited for the machine since its start; `undefined`: it has ended, or the kernel does not count. */
function waitOf(pid: number): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6;
  } catch {
    return undefined;
  }
}

/** A process and its children, such as the backends of PostgreSQL. */
export function withChildren(pid: number): readonly number[] {
  try {
    return [pid, ...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)];
  } catch {
    return [];
  }
}
