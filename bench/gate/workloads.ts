import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Issuer } from './tokens';

/** What callers send, and whether the gate should let it pass. */
export interface Workload {
  readonly name: string;
  readonly file: string;
  readonly passes: boolean;
}

/** More than any cache in the comparison keeps track of, so that each is new again when its turn comes. */
const NEW_TOKENS = 80_000;

/** Writes the workloads into a folder. */
export async function writeWorkloads(issuer: Issuer, folder: string): Promise<Readonly<Record<string, Workload>>> {
  const good = await issuer.tokens(NEW_TOKENS);
  const expired = await issuer.tokens(1_000, { expired: true });
  const [narrow = ''] = await issuer.tokens(1, { scope: 'items:read' });

  function workload(name: string, values: readonly string[], passes: boolean): Workload {
    const file = join(folder, `${name.replaceAll(' ', '-')}.txt`);
    writeFileSync(file, values.join('\n') + '\n');
    return { name, file, passes };
  }
  const bearer = (tokens: readonly string[]): readonly string[] => tokens.map((token) => `Bearer ${token}`);

  return {
    hot: workload('one hot token', bearer(good.slice(0, 1)), true),
    thousand: workload('1,000 tokens', bearer(good.slice(0, 1_000)), true),
    new: workload('every token new', bearer(good), true),
    none: workload('no token', ['-'], false),
    garbage: workload('garbage', ['Bearer garbage'], false),
    expired: workload('expired', bearer(expired), false),
    scope: workload('wrong scope', bearer([narrow]), false),
  };
}
