import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PAGE = join(__dirname, '../../docs/maintainers/messages.md');

/** The texts that a section of docs/maintainers/messages.md has in its last column, by case. */
export function messagesIn(section: string): Readonly<Record<string, string>> {
  const [, text = ''] = readFileSync(PAGE, 'utf8').split(`\n## ${section}\n`);
  const rows = (text.split('\n## ')[0] ?? '').split('\n').filter((line) => /^\|(?! -)/.test(line));
  const cells = rows.slice(1).map((line) => line.split(' | ').map((cell) => cell.replace(/^\| |\|$/g, '').trim()));
  return Object.fromEntries(cells.map(([name = '', , after = '']) => [name, after.replace(/^`|`$/g, '')]));
}
