import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { files } from '../../../package.json';
import { node, npm } from './npm';
import type { Ended } from './npm';

const ROOT = join(__dirname, '../../..');
const TSC = require.resolve('typescript/bin/tsc');

/** What the package holds besides the build. */
const SHIPPED = ['package.json', ...files.filter((name) => name !== 'dist')];

/** Builds the package into `folder`, whatever `dist/` holds, and returns the path of its tarball. */
export async function packTillgate(folder: string): Promise<string> {
  const dist = join(folder, 'dist');
  succeeded(await node(ROOT, TSC, '-p', 'tsconfig.build.json', '--outDir', dist));
  succeeded(await node(ROOT, 'scripts/prune-declarations.mjs', dist));
  for (const name of SHIPPED) await cp(join(ROOT, name), join(folder, name), { recursive: true });
  const packed = succeeded(await npm(folder, 'pack', '--json', '--loglevel=error'));
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  return join(folder, filename);
}

/** What a command wrote, which must have gone well. */
function succeeded({ exitCode, output, errors }: Ended): string {
  if (exitCode !== 0) throw new Error(`${output}\n${errors}`);
  return output;
}
