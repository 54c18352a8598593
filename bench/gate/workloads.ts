import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Issuer } from './tokens';

/** The tokens that callers send, one Authorization header per line of `file`. */
export interface Workload {
  readonly name: string;
  readonly file: string;
}

/** More than any cache in the comparison holds, so that each token is new again when it comes around. */
const NEW_TOKENS = 80_000;

/** Writes the workloads into a folder. */
export async function writeWorkloads(
  issuer: Issuer,
  folder: string,
): Promise<Record<'one' | 'thousand' | 'new', Workload>> {
  const lines = (await issuer.tokens(NEW_TOKENS)).map((token) => `Bearer ${token}\n`);

  function workload(name: string, count: number): Workload {
    const file = join(folder, `${count}.txt`);
    writeFileSync(file, lines.slice(0, count).join(''));
    return { name, file };
  }
  return {
    one: workload('one known token', 1),
    thousand: workload('1,000 known tokens', 1_000),
    new: workload('new tokens', NEW_TOKENS),
  };
}
