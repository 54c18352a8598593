/**
 * What it costs to have Tillgate: loading it, starting the scaffold, installing it, and the memory it holds, each as a
 * Markdown table. `npm run bench:start-up -- imports scaffold --rounds 20`; without names all but `memory` run.
 */
import { parseArgs } from 'node:util';
import { imports } from './imports';
import { installSizes } from './install-size';
import { memory } from './memory';
import { scaffold } from './scaffold';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '20' }, requests: { type: 'string', default: '1000000' } },
});
const rounds = Number(values.rounds);

const PARTS: Readonly<Record<string, () => string | Promise<string>>> = {
  imports: () => imports(rounds),
  scaffold: () => scaffold(Math.ceil(rounds / 2)),
  install: installSizes,
  memory: () => memory(Number(values.requests)),
};
const USUAL = ['imports', 'scaffold', 'install'];

async function main(): Promise<void> {
  for (const name of positionals.length > 0 ? positionals : USUAL) {
    const part = PARTS[name];
    if (!part) throw new Error(`unknown: ${name}; there are ${Object.keys(PARTS).join(', ')}`);
    console.log(`\n${await part()}`);
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
