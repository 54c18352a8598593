import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execute, npm } from './npm';
import type { Ended } from './npm';
import type { Room } from './tarball';

const TEMPLATES = join(__dirname, 'consumers');

/** Projects with the same Express, which install what all of them need once, into the folder above them. */
export interface Group {
  readonly name: string;
  readonly projects: readonly string[];
  /** What is installed; default: all but the command. */
  readonly rooms?: readonly Room[];
}

/** A project that has installed the tarballs, and how its own tests ended. */
export interface Consumer {
  readonly folder: string;
  /** Where its packages are. */
  readonly root: string;
  readonly installed: Ended;
  readonly tested: Ended;
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** Copies the templates of a group into `parent`, installs their dependencies and the tarballs, and runs each `npm test`. */
export async function runGroup(
  parent: string,
  { name, projects }: Group,
  tarballs: readonly string[],
): Promise<Map<string, Consumer>> {
  const root = join(parent, name);
  const manifests: Manifest[] = [];
  for (const project of projects) {
    await cp(join(TEMPLATES, 'shared'), join(root, project), { recursive: true });
    await cp(join(TEMPLATES, project), join(root, project), { recursive: true });
    manifests.push(JSON.parse(await readFile(join(root, project, 'package.json'), 'utf8')) as Manifest);
  }
  const dependencies = Object.assign({}, ...manifests.map((one) => ({ ...one.devDependencies, ...one.dependencies })));
  await writeFile(join(root, 'package.json'), JSON.stringify({ private: true, dependencies }));
  const installed = await install(root, tarballs);
  const consumers = new Map<string, Consumer>();
  for (const project of projects) {
    const folder = join(root, project);
    consumers.set(project, { folder, root, installed, tested: await npm(folder, 'test') });
  }
  return consumers;
}

/** What is in npm's cache is not asked for again. */
export const INSTALL_FLAGS = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error'];

/** Installs what the package.json of `folder` names, and the tarballs, as a user would. */
export function install(folder: string, tarballs: readonly string[]): Promise<Ended> {
  return npm(folder, 'install', ...INSTALL_FLAGS, ...tarballs);
}

/**
 * Gives `folder` the packages of another project: an installation then writes only those that are missing, and removes
 * those that are not asked for.
 */
export async function startFrom(other: string, folder: string): Promise<void> {
  const packages = join(folder, 'node_modules');
  await execute(folder, 'cp', ['-al', join(other, 'node_modules'), packages]);
  // npm would trust it more than the folder, and write into the file that both share.
  await rm(join(packages, '.package-lock.json'));
}

/** Version of a package as the project resolves it. */
export async function versionOf({ root }: Consumer, name: string): Promise<string> {
  const manifest = join(root, 'node_modules', name, 'package.json');
  return (JSON.parse(await readFile(manifest, 'utf8')) as { version: string }).version;
}
