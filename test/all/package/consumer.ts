import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { npm } from './npm';
import type { Ended } from './npm';

const TEMPLATES = join(__dirname, 'consumers');

/** A project that has installed the tarball, and how its own tests ended. */
export interface Consumer {
  readonly folder: string;
  readonly installed: Ended;
  readonly tested: Ended;
}

/** Copies the template `name` into `parent`, installs its dependencies and the tarball, and runs its `npm test`. */
export async function runConsumer(parent: string, name: string, tarball: string): Promise<Consumer> {
  const folder = join(parent, name);
  await cp(join(TEMPLATES, 'shared'), folder, { recursive: true });
  await cp(join(TEMPLATES, name), folder, { recursive: true });
  const installed = await install(folder, tarball);
  return { folder, installed, tested: await npm(folder, 'test') };
}

/** Installs what the package.json of `folder` names, and the tarball, as a user would. */
export function install(folder: string, tarball: string): Promise<Ended> {
  return npm(folder, 'install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', tarball);
}

/** Version of a package as the project resolves it. */
export async function versionOf(consumer: Consumer, name: string): Promise<string> {
  const manifest = join(consumer.folder, 'node_modules', name, 'package.json');
  return (JSON.parse(await readFile(manifest, 'utf8')) as { version: string }).version;
}
