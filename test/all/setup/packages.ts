import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../../..');

/**
 * Makes sure that a package is installed in the major version that a suite was written for, and returns its version.
 * A suite without its foreign software fails; it is never skipped.
 *
 * @throws Error that says what is missing and what to do
 */
export function requirePackage(name: string, major: number): string {
  const version = installedVersion(name);
  if (version?.startsWith(`${major}.`)) return version;
  throw new Error(`this suite needs ${name} ${major}, found ${version ?? 'none'}: run npm ci in the repository`);
}

function installedVersion(name: string): string | undefined {
  try {
    // Read, not required: packages that are ESM only hide their package.json from require().
    const text = readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8');
    return (JSON.parse(text) as { version: string }).version;
  } catch {
    return undefined;
  }
}

/**
 * Makes sure that a program is installed.
 *
 * @param fix - what installs it
 * @throws Error that says what is missing and what to do
 */
export function requireCommand(name: string, fix: string): void {
  const { error } = spawnSync(name, ['--version'], { timeout: 60_000 });
  if (error) throw new Error(`this suite runs ${name}, which is not installed: ${fix}`);
}
