import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { files } from '../package.json';
import { REASONS } from '../src/core/reasons';
import { VARIABLES } from '../src/settings/variables';
import { ISSUER_KEYS } from '../src/express/read-issuer-options';
import { GATE_KEYS } from '../src/express/read-options';

const readme = readFileSync(resolve(__dirname, '../README.md'), 'utf8');
/** Cells of every table row, without the padding of the formatter. */
const rows = readme
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  );

describe('the README', () => {
  it.each(VARIABLES.map((variable) => [variable.name, variable] as const))(
    'documents %s as the code has it',
    (name, variable) => {
      const fallback = 'text' in variable.fallback ? `\`${variable.fallback.text}\`` : variable.fallback.words;
      expect(rows).toContainEqual([`\`${name}\``, fallback, variable.meaning]);
    },
  );

  it('documents no other variable', () => {
    const documented = rows.map(([first = '']) => /^`(TILLGATE_[A-Z_]+)`$/.exec(first)?.[1]).filter(Boolean);
    expect(documented).toEqual(VARIABLES.map(({ name }) => name));
  });

  it.each(Object.entries(REASONS))('says what the response to %s is', (reason, row) => {
    const [, status = '', error = ''] = rows.find(([codes = '']) => codes.includes(`\`${reason}\``)) ?? [];
    expect(status).toMatch(new RegExp(`^${row.status}`));
    expect(error).toContain('error' in row ? `\`${row.error}\`` : 'no');
  });

  it.each([...GATE_KEYS, ...ISSUER_KEYS])('has a row for the option %s', (option) => {
    expect(rows.filter(([names = '']) => names.includes(`\`${option}\``))).toHaveLength(1);
  });

  it('links to files of the package only', () => {
    const targets = [...readme.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target = '']) => target);
    const lost = targets.filter((target) => {
      return !existsSync(resolve(__dirname, '..', target)) || !files.includes(target.split('/')[0] ?? '');
    });
    expect({ links: targets.length > 0, lost }).toEqual({ links: true, lost: [] });
  });
});
