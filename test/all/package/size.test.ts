import { lstatSync, readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install } from './consumer';
import { packTillgate } from './tarball';

let folder: string;

beforeAll(async () => (folder = await mkdtemp(join(tmpdir(), 'tillgate-size-'))));
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What is installed: packages, and bytes on a disk with blocks of 4 KiB. */
function sizeOf(path: string): { packages: number; bytes: number } {
  const packages = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(^|node_modules\/)(@[^/]+\/)?[^/@.][^/]*\/package\.json$/.test(name),
  ).length;
  return { packages, bytes: bytesOf(path) };
}

function bytesOf(path: string): number {
  const found = lstatSync(path);
  if (!found.isDirectory()) return Math.ceil(found.size / 4096) * 4096;
  return readdirSync(path).reduce((total, name) => total + bytesOf(join(path, name)), 4096);
}

it('the gate adds at most 20 packages and 8 MiB to Express', async () => {
  await writeFile(join(folder, 'package.json'), JSON.stringify({ dependencies: { express: '^5.0.0' } }));
  expect(await install(folder, [])).toMatchObject({ exitCode: 0 });
  const express = sizeOf(join(folder, 'node_modules'));
  expect(await install(folder, await packTillgate('gate'))).toMatchObject({ exitCode: 0 });
  const withGate = sizeOf(join(folder, 'node_modules'));
  expect(express.packages).toBeGreaterThan(60);
  expect(withGate.packages - express.packages).toBeLessThanOrEqual(20);
  expect(withGate.bytes - express.bytes).toBeLessThanOrEqual(8 * 2 ** 20);
});
