import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { buildCommit } from './commit';
import { ENGINES } from './engines';
import type { SourceName } from './engines';
import { report } from './report';
import { runChaos } from './run';
import { BOUNDS } from './stand';
import { compileSources } from '../setup/run-folder.cjs';

/** `npm run chaos -- --source redis|postgres|http --minutes 3 [--seed 1] [--beside <commit>]`: exit code 1 if a count is not 0. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      source: { type: 'string', default: 'redis' },
      minutes: { type: 'string', default: '3' },
      seed: { type: 'string' },
      beside: { type: 'string' },
    },
  });
  const { source } = values;
  const seconds = Number(values.minutes) * 60;
  const seed = Number(values.seed ?? randomInt(2 ** 31));
  if (!Object.hasOwn(ENGINES, source)) throw new Error(`--source must be redis, postgres or http, got ${source}`);
  if (!(seconds > 0) || !Number.isInteger(seed)) throw new Error('--minutes must be above 0, --seed a whole number');
  compileSources();
  const file = join(tmpdir(), `tillgate-chaos-${source}-${seed}.jsonl`);
  // A signal would end it without the event that removes the other commit.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));
  const other = values.beside === undefined ? undefined : await buildCommit(values.beside);
  const length = { seconds };
  const { counts, entries } = await runChaos({
    source: source as SourceName,
    length,
    seed,
    beside: other?.compiled,
    file,
  });
  const versions = values.beside === undefined ? '' : `, beside ${values.beside}`;
  const heading = `source ${source}, ${values.minutes} min, seed ${seed}${versions}, ledger ${file}`;
  console.log(`${heading}\n\n${report(counts, entries, BOUNDS)}`);
  process.exitCode = counts.some(({ violations }) => violations.length > 0) ? 1 : 0;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
