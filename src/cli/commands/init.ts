import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { usageError, type CommandContext, type CommandOptions } from '../command';
import { print, shellWord } from '../output';
import { VERSION } from '../version';

/** What is written; a clone has a script that puts it together. */
const TEMPLATE = join(__dirname, '../../template');
const SCRIPT = join(__dirname, '../../../scripts/template.mjs');
/** The same without types, which packing makes. */
const JAVASCRIPT = join(__dirname, '../../template-javascript');
const OURS = /^(@tillgate\/.*|tillgate)$/;
/** `.tillgate` holds client secrets and a private key. npm leaves files of this name out of a package. */
const GITIGNORE = 'node_modules/\nbuild/\n.env\n.tillgate/\ncredentials.json\n';

/** `tillgate init <directory>`: writes a project to start from, the scaffold; never overwrites a file. */
export async function init(context: CommandContext, options: CommandOptions, directory: string): Promise<void> {
  const root = resolve(directory);
  const present = await readdir(root).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw usageError(`cannot use ${directory}: ${error.message}`);
  });
  if (present.length > 0) {
    throw usageError(`${directory} is not empty (${present.length} entries); name a new or an empty directory`);
  }
  if (options.javascript && !existsSync(JAVASCRIPT)) {
    throw usageError('--javascript: a clone has no such project, the package does: npm run pack');
  }
  const template = options.javascript ? JAVASCRIPT : TEMPLATE;
  if (existsSync(template)) await cp(template, root, { recursive: true });
  else execFileSync(process.execPath, [SCRIPT, root]);
  await writeFile(join(root, '.gitignore'), GITIGNORE);
  const manifest = await readFile(join(root, 'package.json'), 'utf8');
  await writeFile(join(root, 'package.json'), named(manifest, basename(root)));
  const files = (await readdir(root)).sort();
  print(
    context,
    { directory: root, files },
    [
      `wrote ${files.join(', ')}\n\nGo on:\n`,
      `  cd ${shellWord(directory)}`,
      '  npm install',
      '  npm test',
      '  npm run dev            # with a token server; starts again when a file changes\n',
      'README.md says what else there is.',
    ].join('\n'),
  );
}

/** The package.json with the name of the directory, and this version of the packages. */
function named(manifest: string, directory: string): string {
  const name = directory.toLowerCase().replace(/[^a-z0-9._-]+/g, '-');
  const members = JSON.parse(manifest) as Readonly<Record<string, Readonly<Record<string, string>>>>;
  const current = `^${VERSION}`;
  const ranged = ([one, range]: [string, string]): [string, string] => [one, OURS.test(one) ? current : range];
  const withRanges = (names = {}): object => Object.fromEntries(Object.entries<string>(names).map(ranged));
  const dependencies = withRanges(members['dependencies']);
  const devDependencies = withRanges(members['devDependencies']);
  const own = { name: name.replace(/^[._-]+/, '') || 'shop', dependencies, devDependencies };
  return `${JSON.stringify({ ...members, ...own }, undefined, 2)}\n`;
}
