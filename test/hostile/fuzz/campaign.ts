import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';

/** What came of the inputs of one target. */
export interface Tally {
  inputs: number;
  /** Answers by class; 503 is counted by itself: keys or metadata that cannot be used are an outage, and said to be one. */
  ok: number;
  refused: number;
  unavailable: number;
  failed: number;
  /** Connections that ended without an answer. */
  unanswered: number;
}

/** One thing to be fuzzed, opened and ready. */
export interface FuzzTarget<Input> {
  readonly inputs: Arbitrary<Input>;
  /**
   * Sends one input and judges what comes back.
   *
   * @returns the statuses of the answers
   * @throws Error when a property does not hold
   */
  check(input: Input): Promise<readonly (number | undefined)[]>;
  close(): Promise<void>;
}

/** Opens a target; by name. */
export type OpenTarget = () => Promise<FuzzTarget<unknown>>;

/** A target whose inputs have been forgotten, so that targets of different inputs fit into one table. */
export function anyInput<Input>(target: FuzzTarget<Input>): FuzzTarget<unknown> {
  return target;
}

/**
 * Runs one target.
 *
 * @throws Error with seed and the smallest input found, when a property does not hold
 */
export async function fuzz(open: OpenTarget, runs: number, seed: number): Promise<Tally> {
  const tally: Tally = { inputs: 0, ok: 0, refused: 0, unavailable: 0, failed: 0, unanswered: 0 };
  const target = await open();
  try {
    const property = fc.asyncProperty(target.inputs, async (input) => {
      tally.inputs++;
      for (const status of await target.check(input)) count(tally, status);
    });
    await fc.assert(property, { numRuns: runs, seed });
    return tally;
  } finally {
    await target.close();
  }
}

function count(tally: Tally, status: number | undefined): void {
  if (status === undefined) tally.unanswered++;
  else if (status === 503) tally.unavailable++;
  else if (status >= 500) tally.failed++;
  else if (status >= 400) tally.refused++;
  else tally.ok++;
}

/** Counts what would have ended the process, while `work` runs. */
export async function countCrashes(work: () => Promise<void>): Promise<readonly unknown[]> {
  const crashes: unknown[] = [];
  const note = (error: unknown): void => void crashes.push(error);
  process.on('unhandledRejection', note).on('uncaughtException', note);
  try {
    await work();
    // What nobody waits for shows itself a turn later.
    await new Promise((resolve) => setImmediate(resolve));
    return crashes;
  } finally {
    process.off('unhandledRejection', note).off('uncaughtException', note);
  }
}
