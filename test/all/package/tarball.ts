import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { node, npm } from './npm';
import type { Ended } from './npm';

const ROOT = join(__dirname, '../../..');
const TSC = require.resolve('typescript/bin/tsc');

/** What the package is made of beside the build. */
const SHIPPED = ['package.json', 'openapi.yaml', 'README.md', 'CHANGELOG.md', 'LICENSE'];

/** Builds the package into `folder`, whatever `dist/` holds, and answers the path of its tarball. */
export async function packTillgate(folder: string): Promise<string> {
  succeeded(await node(ROOT, TSC, '-p', 'tsconfig.build.json', '--outDir', join(folder, 'dist')));
  for (const name of SHIPPED) await cp(join(ROOT, name), join(folder, name));
  const packed = succeeded(await npm(folder, 'pack', '--json', '--loglevel=error'));
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  return join(folder, filename);
}

/** What a command wrote, which must have gone well. */
function succeeded({ exitCode, output, errors }: Ended): string {
  if (exitCode !== 0) throw new Error(`${output}\n${errors}`);
  return output;
}
