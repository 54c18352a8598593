import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuthenticateOptions } from '../../../src/gate';

const PAGE = join(__dirname, '../../../docs/issuers.md');

/** The options of `authenticate()` that the section of a server shows. */
export function optionsOfSection(name: string): Partial<AuthenticateOptions> {
  const [, literal] = /```js\nconst gate = authenticate\((\{[^]*?\})\);\n```/.exec(section(name)) ?? [];
  if (literal === undefined) throw new Error(`docs/issuers.md: the section ${name} has no options`);
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- an object literal of our own page
  return new Function(`return (${literal});`)() as Partial<AuthenticateOptions>;
}

/** The SQL that the section of a server shows. */
export function sqlOfSection(name: string, block = 0): string {
  const blocks = [...section(name).matchAll(/```sql\n([^]*?)```/g)].map(([, sql]) => sql);
  const sql = blocks[block];
  if (sql === undefined) throw new Error(`docs/issuers.md: the section ${name} has no SQL ${block}`);
  return sql;
}

function section(name: string): string {
  const found = readFileSync(PAGE, 'utf8')
    .split(/^## /m)
    .find((one) => one.startsWith(`${name}\n`));
  if (found === undefined) throw new Error(`docs/issuers.md has no section ${name}`);
  return found;
}

/** The JSON that the section of a server shows. */
export function configOfSection(name: string): string {
  const [, json] = /```json\n([^]*?)```/.exec(section(name)) ?? [];
  if (json === undefined) throw new Error(`docs/issuers.md: the section ${name} has no JSON`);
  return json;
}
