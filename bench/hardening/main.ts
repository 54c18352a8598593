/**
 * What the gate and the token server bear, each as a Markdown table. `npm run bench:hardening -- <name> [--option N]`;
 * without a name all of them run. Options stand next to each name below.
 */
import { flood, forged } from './flood';
import { halfOpen } from './half-open';
import { kill } from './kill';
import { keySetBodies } from './key-set-bodies';
import { outage } from './outage';
import { rotation } from './rotation';
import { stop } from './stop';
import type { Suite } from './suite';
import { uniqueTokens } from './unique-tokens';
import { validation } from './validation';
import { wrongSecrets } from './wrong-secrets';

const SUITES: Readonly<Record<string, Suite>> = {
  rotation,
  outage,
  flood,
  forged,
  bodies: keySetBodies,
  tokens: uniqueTokens,
  kill,
  stop,
  secrets: wrongSecrets,
  'half-open': halfOpen,
  validation,
};

async function main([name, ...given]: readonly string[]): Promise<void> {
  if (name !== undefined && !(name in SUITES)) throw new Error(`unknown: ${name}\n${usage()}`);
  for (const [each, suite] of Object.entries(SUITES)) {
    if (name !== undefined && name !== each) continue;
    console.error(`${each}: ${suite.about}`);
    const startedMs = performance.now();
    console.log(`\n${await suite.run(readOptions(suite, given))}\n`);
    console.error(`${each}: ${Math.round((performance.now() - startedMs) / 1000)} s`);
  }
}

/** The defaults with what was given on the command line laid over them. */
function readOptions({ defaults }: Suite, given: readonly string[]): Readonly<Record<string, number>> {
  const options = { ...defaults };
  for (let index = 0; index < given.length; index += 2) {
    const name = given[index]?.replace(/^--/, '') ?? '';
    const value = Number(given[index + 1]);
    if (!(name in defaults) || Number.isNaN(value)) throw new Error(`unknown option ${given[index]}\n${usage()}`);
    options[name] = value;
  }
  return options;
}

function usage(): string {
  const lines = Object.entries(SUITES).map(([name, { about, defaults }]) => {
    const options = Object.entries(defaults).map(([option, value]) => `--${option} ${value}`);
    return `  ${name} ${options.join(' ')}\n    ${about}`;
  });
  return `npm run bench:hardening -- <name> [--option N]\n${lines.join('\n')}`;
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  },
);
