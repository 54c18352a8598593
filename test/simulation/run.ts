import { planOf } from './plan';
import type { Subject } from './subject';
import { World } from './world';

/** What many worlds have shown. */
export interface Totals {
  readonly worlds: number;
  readonly events: number;
  readonly decisions: number;
  readonly simulatedMs: number;
  readonly broken: readonly { readonly seed: number; readonly message: string }[];
}

export const NOTHING: Totals = { worlds: 0, events: 0, decisions: 0, simulatedMs: 0, broken: [] };

export function add(one: Totals, other: Totals): Totals {
  return {
    worlds: one.worlds + other.worlds,
    events: one.events + other.events,
    decisions: one.decisions + other.decisions,
    simulatedMs: one.simulatedMs + other.simulatedMs,
    broken: [...one.broken, ...other.broken],
  };
}

/** Runs the worlds of seeds, one after the other. Errors of refusals need no stack meanwhile: it costs half of the time. */
export async function runWorlds(
  seeds: Iterable<number>,
  subject: Subject,
  isEnough: (totals: Totals) => boolean = () => false,
): Promise<Totals> {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  let totals = NOTHING;
  try {
    for (const seed of seeds) {
      const { violation, ...counts } = await new World(planOf(seed), subject).run();
      const broken = violation ? [{ seed, message: violation.message }] : [];
      totals = add(totals, { worlds: 1, ...counts, broken });
      if (isEnough(totals)) break;
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  return totals;
}

/** The integers from one to another, both included. */
export function* seedsFrom(first: number, last: number): Generator<number> {
  for (let seed = first; seed <= last; seed++) yield seed;
}
