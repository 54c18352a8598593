import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { PlantedFault } from './faults';

const isSource = (path: string): boolean => !/[\\/](dist|node_modules)([\\/]|$)/.test(path.slice(ROOT.length));

export const ROOT = join(__dirname, '../..');

/** The file of a fault, with the fault in it. */
export function withFault({ name, file, from, to }: PlantedFault): string {
  const parts = readFileSync(join(ROOT, file), 'utf8').split(from);
  if (parts.length !== 2) throw new Error(`${name}: its line is not in ${file} once`);
  return parts.join(to);
}

/** Copies the code, with a fault in it, to where it finds the packages of this repository. */
export function plant(fault: PlantedFault, name: string): { readonly root: string; remove(): void } {
  const root = join(ROOT, 'node_modules/.cache/simulation', name);
  rmSync(root, { recursive: true, force: true });
  const copied = join(root, 'src/gate');
  cpSync(join(ROOT, 'src/gate'), copied, { recursive: true, filter: isSource });
  cpSync(join(ROOT, 'src/stores'), join(root, 'src/stores'), { recursive: true, filter: isSource });
  const file = join(root, fault.file);
  writeFileSync(file, withFault(fault));
  const link = join(root, 'node_modules/tillgate');
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(copied, link, 'dir');
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) };
}
