import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { files, peerDependencies } from '../../package.json';
import { PAGES, withSections } from '../../scripts/docs';
import { REASONS } from '../../src/core/reasons';
import { APP_PACKAGES, AUTH_SERVER_PACKAGES } from '../../src/core/required-packages';
import { GATE_OPTIONS, ISSUER_OPTIONS } from '../../src/gate/read-options';
import { VARIABLES } from '../../src/settings/variables';

const ROOT = resolve(__dirname, '../..');
/** Every page for users: all but the one of deploy/ are in the package. */
const DOCUMENTS = ['README.md', 'examples/README.md', 'deploy/README.md', ...markdownIn('docs')];

function markdownIn(folder: string): readonly string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.md')).map((name) => `${folder}/${name}`);
}

function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8');
}

/** Cells of every table row of a page. */
function rowsOf(page: string): readonly (readonly string[])[] {
  const lines = read(page)
    .split('\n')
    .filter((line) => line.startsWith('|'));
  return lines.map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  );
}

describe('docs/', () => {
  it.each(PAGES)('%s repeats the code as it is: else run npm run docs', (page) => {
    expect(withSections(read(page))).toBe(read(page));
  });

  it('documents the variables with their defaults, and no others', () => {
    const expected = VARIABLES.map(({ name, fallback, meaning, type }) => [
      type.isSecret ? `\`${name}\`, \`${name}_FILE\`` : `\`${name}\``,
      'text' in fallback ? `\`${fallback.text}\`` : fallback.words,
      meaning,
    ]);
    expect(rowsOf('docs/variables.md').filter(([name = '']) => name.startsWith('`TILLGATE_'))).toEqual(expected);
  });

  it.each(Object.entries(REASONS))('says what the response to %s is, and what to do', (reason, row) => {
    const seen = 'error' in row ? `${row.status} \`${row.error}\`` : String(row.status);
    expect(read('docs/reasons.md')).toContain(`\n### ${reason}\n\n**${seen}.** `);
  });

  it.each(Object.keys({ ...GATE_OPTIONS, ...ISSUER_OPTIONS }))('has a row for the option %s', (option) => {
    const rows = rowsOf('docs/options.md').filter(
      ([name = '']) => name.replace(/^\[(.*)\]\(.*\)$/, '$1') === `\`${option}\``,
    );
    expect(rows).toEqual([[expect.any(String), expect.stringMatching(/./), expect.stringMatching(/./)]]);
  });
});

it('docs/scaffold.md installs all packages of the scaffold, in the major versions that it needs', () => {
  const [, command = ''] = /^npm install tillgate (.*)$/m.exec(read('docs/scaffold.md')) ?? [];
  const needed = [...new Set<keyof typeof peerDependencies>([...APP_PACKAGES, ...AUTH_SERVER_PACKAGES])].map((name) => {
    const majors = [...peerDependencies[name].matchAll(/\^(\d+)/g)].map(([, major]) => Number(major));
    return `${name}@${Math.max(...majors)}`;
  });
  expect(command.split(' ').sort()).toEqual(needed.sort());
});

it.each(markdownIn('docs/issuers'))(
  '%s begins with a 200 without a generation source, then says what changes do',
  (page) => {
    const text = read(page);
    const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading = '']) =>
      heading.replace(/^(At|In) .*/, 'there'),
    );
    expect(headings.filter((heading) => heading !== 'there')).toEqual(['A first 200', 'Changes of clients']);
    const [first = ''] = text.split('## Changes of clients');
    expect(first).toContain('app.listen(3000);');
    expect(first).toMatch(/TOKEN=\$\(curl -s (?:.*\\\n)?.* -d scope=/);
    expect(first).not.toContain('generationSource');
  },
);

describe('the README', () => {
  it('has at most 10,000 characters', () => {
    expect(read('README.md').length).toBeLessThanOrEqual(10_000);
  });

  it('has no link to a web page: the project has no public URL yet', () => {
    expect(read('README.md')).not.toMatch(/\]\(https?:/);
  });
});

/** Those pages link to tests, which the package does not hold. */
function isForMaintainers(page: string): boolean {
  return page.startsWith('docs/maintainers/') || page.startsWith('docs/decisions/');
}

/** Ids of the headings of a page, as GitHub makes them. */
function anchorsOf(page: string): readonly string[] {
  const text = read(page).replace(/^```[^]*?^```$/gm, '');
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replace(/ /g, '-'),
  );
}

describe.each(DOCUMENTS)('the links of %s', (page) => {
  const targets = [...read(page).matchAll(/\]\((?!https?:)([^)]*)\)/g)].map(([, target = '']) => target);

  it('lead to files and headings that exist', () => {
    const lost = targets.filter((target) => {
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path));
      return !existsSync(join(ROOT, file)) || (anchor !== undefined && !anchorsOf(file).includes(anchor));
    });
    expect(lost).toEqual([]);
  });

  if (isForMaintainers(page)) return;

  it('lead to files of the package', () => {
    const outside = targets.filter((target) => {
      const file = relative(ROOT, join(ROOT, dirname(page), target.split('#')[0] ?? ''));
      return file !== '' && !target.startsWith('#') && !files.includes(file.split('/')[0] ?? '');
    });
    expect(outside).toEqual([]);
  });
});
