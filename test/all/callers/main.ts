import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { compileSources } from '../setup/run-folder.cjs';
import { afterChange, atTheLimit, missingFor, PROGRAMS, redirected, whileUnavailable } from './callers';
import type { CallerProgram, Seen } from './callers';

const PAGE = resolve(__dirname, '../../../docs/callers.md');
const TABLE =
  /(<!-- callers: written by npm run callers -->\n\n<!-- prettier-ignore-start -->\n)[^]*?(\n<!-- prettier-ignore-end -->)/;
const HEAD = ['language', 'library', 'version', 'compared by', 'calls', 'token requests', '2xx'];

/** `npm run callers`: runs each caller, and writes the table of docs/callers.md where none is skipped. */
async function main(): Promise<void> {
  compileSources();
  const rows: string[][] = [];
  let isComplete = true;
  for (const program of Object.values(PROGRAMS)) {
    const missing = missingFor(program);
    if (missing === undefined) {
      rows.push(...(await rowsOf(program)));
      continue;
    }
    isComplete = false;
    console.log(`${program.language}, ${program.library} is skipped: ${missing}`);
  }
  const table = [HEAD, HEAD.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  console.log(table);
  if (!isComplete) return;
  const page = readFileSync(PAGE, 'utf8');
  writeFileSync(
    PAGE,
    page.replace(TABLE, (_all, start: string, end: string) => `${start}\n${table}\n${end}`),
  );
}

async function rowsOf(program: CallerProgram): Promise<string[][]> {
  const { language, library, version } = program;
  const row = (what: string, { outcomes, tokenRequests }: Seen): string[] => {
    const accepted = outcomes.filter((outcome) => outcome === 200);
    return [language, library, version, what, ...[outcomes.length, tokenRequests, accepted.length].map(String)];
  };
  const rows = [row('stamped', await afterChange(program, 'stamped')), row('`iat`', await afterChange(program, 'iat'))];
  const unavailable = await whileUnavailable(program);
  const [first, later] = await atTheLimit(program);
  const elsewhere = await redirected(program);
  const errors = new Set([...first.outcomes, ...later.outcomes]);
  console.log(
    `${language}, ${library}: after 503 ${unavailable.outcomes[0]} with ${unavailable.tokenRequests} token requests; ` +
      `at the limit ${first.tokenRequests} and ${later.tokenRequests} token requests, outcomes ${[...errors].join(', ')}; ` +
      `redirected ${elsewhere.outcomes[0]} with ${elsewhere.tokenRequests} token requests, ${elsewhere.leaked.length} tokens elsewhere`,
  );
  return rows;
}

void main();
