import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../support/eventually';
import { node } from './npm';
import type { Ended } from './npm';

const ROOT = join(__dirname, '../../..');

/** What the command needs beside itself, and the command. */
export const COMMAND = ['gate', 'stores', 'client', 'testing', 'cli'] as const;

export type Room = (typeof COMMAND)[number];

let packed: Promise<Readonly<Record<Room, string>>> | undefined;

/**
 * Builds and packs the rooms, whatever their `dist/` hold, and returns the paths of the tarballs of some. The suites of one
 * run share them: the first one builds, the others wait. PACKED names a folder where they were packed just now, as in .ci/run.
 */
export async function packTillgate(...rooms: readonly Room[]): Promise<readonly string[]> {
  const all = await (packed ??= packOnce(join(process.env['RUN_FOLDER'] ?? '', 'package')));
  return rooms.map((room) => all[room]);
}

async function packOnce(folder: string): Promise<Readonly<Record<Room, string>>> {
  const packed = process.env['PACKED'];
  if (packed !== undefined) return requireTarballs(packed);
  const ended = `${folder}.ended`;
  try {
    await mkdir(folder);
  } catch {
    await eventually('the tarballs', () => existsSync(ended), 300_000);
    return requireTarballs(folder);
  }
  try {
    succeeded(await node(ROOT, 'scripts/build.mjs'));
    succeeded(await node(ROOT, 'scripts/pack.mjs', folder));
  } finally {
    await writeFile(ended, '');
  }
  return requireTarballs(folder);
}

async function requireTarballs(folder: string): Promise<Readonly<Record<Room, string>>> {
  const names = await readdir(folder);
  const tarballOf = (name: RegExp): string => {
    const found = names.find((file) => name.test(file));
    if (found === undefined) throw new Error('the packages could not be built');
    return join(folder, found);
  };
  return {
    gate: tarballOf(/^tillgate-\d.*\.tgz$/),
    stores: tarballOf(/^tillgate-stores-.*\.tgz$/),
    client: tarballOf(/^tillgate-client-.*\.tgz$/),
    testing: tarballOf(/^tillgate-testing-.*\.tgz$/),
    cli: tarballOf(/^tillgate-cli-.*\.tgz$/),
  };
}

function succeeded({ exitCode, output, errors }: Ended): void {
  if (exitCode !== 0) throw new Error(`${output}\n${errors}`);
}
