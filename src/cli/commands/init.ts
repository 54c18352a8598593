import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { APP_PACKAGES, AUTH_SERVER_PACKAGES, ownManifest } from '../../core/required-packages';
import { CliError, EXIT, print } from '../command';
import type { CommandContext } from '../command';

/** Where the files of the project are kept that are the same in every project. */
const PROJECT = join(__dirname, '../static/project');

/** `tillgate init <directory>`: writes a small project to start from; never overwrites a file. */
export async function init(context: CommandContext, directory: string): Promise<void> {
  const root = resolve(directory);
  await requireEmpty(root, directory);
  const files: Readonly<Record<string, string | Buffer>> = {
    'package.json': manifest(basename(root)),
    'app.js': await readFile(join(PROJECT, 'app.js')),
    'server.js': await readFile(join(PROJECT, 'server.js')),
    'test/orders.test.js': await readFile(join(PROJECT, 'test/orders.test.js')),
    '.env.example': await readFile(join(PROJECT, '.env.example')),
    // `.tillgate` holds client secrets and a private key. npm leaves files of this name out of a package.
    '.gitignore': 'node_modules/\n.env\n.tillgate/\ncredentials.json\n',
  };
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content, { flag: 'wx' });
  }
  const names = Object.keys(files);
  print(
    context,
    { directory: root, files: names },
    [
      `wrote ${names.join(', ')}\n\nGo on:\n`,
      `  cd ${directory}`,
      '  npm install',
      '  npm test',
      '  npm run dev            # with a token server; starts again when a file changes\n',
      'Or the token server and the API, each in a terminal of its own:\n',
      '  npm run token-server',
      '  cp .env.example .env   # names the authorization server',
      '  npm start',
    ].join('\n'),
  );
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

function manifest(directory: string): string {
  const { version = '0.1.0', peerDependencies = {} } = ownManifest() ?? {};
  const scaffold = [...APP_PACKAGES, ...AUTH_SERVER_PACKAGES].filter((peer) => peer !== 'express');
  const name = directory.toLowerCase().replace(/[^a-z0-9._-]+/g, '-');
  const members = {
    name: name.replace(/^[._-]+/, '') || 'commerce-api',
    private: true,
    type: 'module',
    engines: { node: '^20.19.0 || ^22.12.0 || >=24.0.0' },
    scripts: {
      dev: 'tillgate dev --watch --app ./app.js',
      'token-server': 'tillgate dev --token-server',
      start: 'node --env-file=.env server.js',
      test: 'node --test',
    },
    dependencies: { express: '^5.3.0', tillgate: `^${version}` },
    // What `tillgate dev` needs: nothing that the API itself loads.
    devDependencies: {
      ...Object.fromEntries(scaffold.map((peer) => [peer, peerDependencies[peer]])),
      supertest: '^7.3.2',
    },
  };
  return `${JSON.stringify(members, undefined, 2)}\n`;
}
