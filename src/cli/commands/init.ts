import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { CommandContext } from '../command';
import { CliError, EXIT } from '../exit';
import { print } from '../output';
import { projectFiles } from '../project-files';

/** `tillgate init <directory>`: writes a small project to start from; never overwrites a file. */
export async function init(context: CommandContext, directory: string): Promise<number> {
  const root = resolve(directory);
  await requireEmpty(root, directory);
  const files = projectFiles(basename(root));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text, { flag: 'wx' });
  }
  const names = Object.keys(files);
  print(
    context,
    { directory: root, files: names },
    `wrote ${names.join(', ')}\n\nGo on:\n\n  cd ${directory}\n  npm install\n  npm test\n  npm run dev            # with a token server for development\n  cp .env.example .env   # say which authorization server\n  npm start`,
  );
  return EXIT.ok;
}

async function requireEmpty(root: string, shown: string): Promise<void> {
  let entries: readonly string[];
  try {
    entries = await readdir(root);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw new CliError(`cannot use ${shown}: ${(error as Error).message}`, EXIT.usage);
  }
  if (entries.length > 0) {
    throw new CliError(
      `${shown} is not empty (${entries.length} entries); name a new or an empty directory`,
      EXIT.usage,
    );
  }
}
