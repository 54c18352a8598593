import fc from 'fast-check';
import type { Arbitrary } from 'fast-check';

const TURNS = 20;

/** Counts the inputs of one target and their responses. */
export interface Tally {
  inputs: number;
  /** Responses by class; 503 is separate, because unusable keys or metadata are an outage. */
  ok: number;
  refused: number;
  unavailable: number;
  failed: number;
  /** Connections that ended without a response. */
  noResponse: number;
}

/** One fuzzed endpoint, open and ready. */
export interface FuzzTarget<Input> {
  readonly inputs: Arbitrary<Input>;
  /**
   * Sends one input and checks the responses.
   *
   * @returns the statuses of the responses
   * @throws Error when a property does not hold
   */
  check(input: Input): Promise<readonly (number | undefined)[]>;
  close(): Promise<void>;
}

/** Opens a target. */
export type OpenTarget = () => Promise<FuzzTarget<unknown>>;

/** Erases the input type, so that targets of different inputs fit into one table. */
export function anyInput<Input>(target: FuzzTarget<Input>): FuzzTarget<unknown> {
  return target;
}

/**
 * Runs one target.
 *
 * @throws Error with seed and the smallest input found, when a property does not hold
 */
export async function fuzz(open: OpenTarget, runs: number, seed: number): Promise<Tally> {
  const tally: Tally = { inputs: 0, ok: 0, refused: 0, unavailable: 0, failed: 0, noResponse: 0 };
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
  if (status === undefined) tally.noResponse++;
  else if (status === 503) tally.unavailable++;
  else if (status >= 500) tally.failed++;
  else if (status >= 400) tally.refused++;
  else tally.ok++;
}

/**
 * Collects the errors that would end the process while `work` runs. Not for Jest, whose sandbox has its own
 * `process`: there every such error fails the running test, if {@link settle} is awaited.
 */
export async function countCrashes(work: () => Promise<void>): Promise<readonly unknown[]> {
  const crashes: unknown[] = [];
  const note = (error: unknown): void => void crashes.push(error);
  process.on('unhandledRejection', note).on('uncaughtException', note);
  try {
    await work();
    await settle();
    return crashes;
  } finally {
    process.off('unhandledRejection', note).off('uncaughtException', note);
  }
}

/** Waits until Node has reported every error: each uncaught exception puts off the next report by a turn. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
