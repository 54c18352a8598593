import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Issuer } from './tokens';

/** The tokens that callers send, one Authorization header per line of `file`. */
export interface Workload {
  readonly name: string;
  readonly file: string;
}

/** How many tokens each workload has; of new ones more than any cache in the comparison holds, so that each is new again. */
const WORKLOADS = {
  one: { name: 'one known token', tokens: 1 },
  thousand: { name: '1,000 known tokens', tokens: 1_000 },
  new: { name: 'new tokens', tokens: 80_000 },
};

export type WorkloadName = keyof typeof WORKLOADS;
export const WORKLOAD_NAMES = Object.keys(WORKLOADS) as readonly WorkloadName[];

/** Writes a workload into a folder. */
export async function writeWorkload(which: WorkloadName, issuer: Issuer, folder: string): Promise<Workload> {
  const { name, tokens } = WORKLOADS[which];
  const file = join(folder, `${which}.txt`);
  writeFileSync(file, (await issuer.tokens(tokens)).map((token) => `Bearer ${token}\n`).join(''));
  return { name, file };
}
