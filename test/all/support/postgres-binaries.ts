import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const DEBIAN = '/usr/lib/postgresql';

/**
 * The folder with `postgres` and `initdb`: what pg_config names, or the newest version of Debian's package.
 *
 * @throws Error saying what to install when there is none.
 */
export function postgresFolder(): string {
  const found = [...fromPgConfig(), ...fromDebian()].find((folder) => existsSync(join(folder, 'initdb')));
  if (found === undefined) throw new Error('these tests start a PostgreSQL server: apt-get install postgresql');
  return found;
}

function fromPgConfig(): string[] {
  try {
    return [execFileSync('pg_config', ['--bindir'], { encoding: 'utf8' }).trim()];
  } catch {
    return [];
  }
}

function fromDebian(): string[] {
  if (!existsSync(DEBIAN)) return [];
  const versions = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(DEBIAN, version, 'bin'));
}

/** Whom the server runs as: it refuses root, so root lends it the user that the package has made. */
export function serverUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}
