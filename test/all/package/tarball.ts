import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { files } from '../../../package.json';
import { eventually } from '../support/eventually';
import { node, npm } from './npm';
import type { Ended } from './npm';

const ROOT = join(__dirname, '../../..');
const TSC = require.resolve('typescript/bin/tsc');

/** What the package holds besides the build. */
const SHIPPED = ['package.json', ...files.filter((name) => name !== 'dist' && !name.startsWith('!'))];

let packed: Promise<string> | undefined;

/**
 * Builds the package, whatever `dist/` holds, and returns the path of its tarball. The suites of one run share it: the
 * first one builds, the others wait. With BUILD_IS_FRESH=1 `dist/` was built just now, as in .ci/run.
 */
export function packTillgate(): Promise<string> {
  return (packed ??= packOnce(join(process.env['RUN_FOLDER'] ?? '', 'package')));
}

async function packOnce(folder: string): Promise<string> {
  const ended = `${folder}.ended`;
  try {
    await mkdir(folder);
  } catch {
    await eventually('the tarball', () => existsSync(ended), 300_000);
    return requireTarball(folder);
  }
  try {
    await pack(folder);
  } finally {
    await writeFile(ended, '');
  }
  return requireTarball(folder);
}

async function requireTarball(folder: string): Promise<string> {
  const name = (await readdir(folder)).find((file) => file.endsWith('.tgz'));
  if (name === undefined) throw new Error('the package could not be built');
  return join(folder, name);
}

async function pack(folder: string): Promise<void> {
  const dist = join(folder, 'dist');
  if (process.env['BUILD_IS_FRESH'] === '1') await cp(join(ROOT, 'dist'), dist, { recursive: true });
  else await build(dist);
  for (const name of SHIPPED) await cp(join(ROOT, name), join(folder, name), { recursive: true });
  succeeded(await npm(folder, 'pack', '--loglevel=error'));
}

/** As `npm run build`. */
async function build(dist: string): Promise<void> {
  succeeded(await node(ROOT, TSC, '-p', 'tsconfig.build.json', '--outDir', dist));
  succeeded(await node(ROOT, 'scripts/copy-static.mjs', dist));
  succeeded(await node(ROOT, 'scripts/prune-declarations.mjs', dist));
}

function succeeded({ exitCode, output, errors }: Ended): void {
  if (exitCode !== 0) throw new Error(`${output}\n${errors}`);
}
