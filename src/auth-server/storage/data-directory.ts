import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Makes the directory for clients, keys and secrets if it is missing, for its owner only, and keeps it out of git.
 *
 * @throws Error that says what to do, when other users can write to it or it cannot be made.
 */
export async function prepareDataDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await requirePrivate(path);
    await writeFile(join(path, '.gitignore'), '*\n', { flag: 'wx' }).catch(acceptExisting);
  } catch (error) {
    throw describeDiskError(path, error);
  }
}

/** Puts an error of the file system into words; other errors stay as they are. */
export function describeDiskError(path: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return error;
  const remedy = code === 'ENOSPC' ? 'make room on its disk' : 'make it writable, or choose another';
  return new Error(`the data directory ${path} cannot be written (${code}): ${remedy}`, { cause: error });
}

/** Another user who can write here could replace the keys. Windows has no such permission bits. */
async function requirePrivate(path: string): Promise<void> {
  const { mode } = await stat(path);
  if (process.platform === 'win32' || (mode & 0o022) === 0) return;
  const octal = (mode & 0o777).toString(8);
  throw new Error(`other users can write to the data directory ${path} (mode ${octal}): run chmod go-w ${path}`);
}

function acceptExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}
