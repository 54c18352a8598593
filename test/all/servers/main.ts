import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serversTable } from '../../../scripts/docs';
import { runServer } from './run-server';
import type { Seen } from './run-server';
import { BUILT_SERVERS, SERVERS } from './servers';

/** What the table of docs/issuers.md shows. */
const RECORD = join(__dirname, 'seen.json');

/**
 * `npm run servers [-- name... --record]`: what the servers of docs/issuers.md respond and do, as rows of its table. `--record`
 * keeps the rows; `npm run docs` then writes the table.
 */
async function main(): Promise<void> {
  const names = process.argv.slice(2).filter((one) => one !== '--record');
  const all = [...SERVERS, ...BUILT_SERVERS];
  const chosen = names.length === 0 ? SERVERS : all.filter(({ name }) => names.includes(name));
  if (chosen.length === 0) throw new Error(`no such server: ${all.map(({ name }) => name).join('; ')}`);
  const rows: Seen[] = [];
  for (const server of chosen) {
    try {
      rows.push(await runServer(server));
    } catch (error) {
      const { message, cause } = error as Error & { readonly cause?: Error };
      console.log(`${server.name} ${server.version} was not run: ${message}${cause ? `: ${cause.message}` : ''}`);
    }
  }
  console.log(serversTable(rows));
  if (process.argv.includes('--record')) record(rows);
}

/** Replaces the rows of these servers, in the order that the record has. */
function record(rows: readonly Seen[]): void {
  const kept = JSON.parse(readFileSync(RECORD, 'utf8')) as Seen[];
  const newer = (row: Seen): Seen => rows.find(({ server }) => server === row.server) ?? row;
  const added = rows.filter(({ server }) => !kept.some((one) => one.server === server));
  writeFileSync(RECORD, `${JSON.stringify([...kept.map(newer), ...added], undefined, 2)}\n`);
}

main().then(
  () => process.exit(),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
