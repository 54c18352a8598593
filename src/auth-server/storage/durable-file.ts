import { randomBytes } from 'node:crypto';
import * as promises from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Replaces a file as a whole; once it resolves, neither `kill -9` nor a power cut can lose or tear the file. */
export type WriteFile = (path: string, text: string) => Promise<void>;

/** The calls of `node:fs/promises` that a durable write makes. */
export type FileSystem = Pick<typeof promises, 'writeFile' | 'open' | 'rename' | 'rm'>;

/**
 * Writes a new file next to `path`, flushes it, and renames it over `path`. Only the owner can read it.
 *
 * @throws Error of the file system; `path` is then as it was.
 */
export async function writeDurably(path: string, text: string, fs: FileSystem = promises): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    // Exclusive: neither an existing file nor a symbolic link in its place is written through.
    await fs.writeFile(temporary, text, { flag: 'wx', mode: 0o600, flush: true });
    await fs.rename(temporary, path);
  } catch (error) {
    // A half-written file may be what fills the disk. A failure to remove it must not hide the first error.
    await fs.rm(temporary).catch(() => {});
    throw error;
  }
  // Makes the rename itself survive a power cut. Some systems cannot flush a directory (Windows).
  await flushDirectory(fs, dirname(path)).catch(() => {});
}

/** Removes what writes of an earlier process have left unfinished next to `path`. */
export async function removeUnfinished(path: string): Promise<void> {
  for (const entry of await promises.readdir(dirname(path))) {
    const isUnfinished = entry.startsWith(`${basename(path)}.`) && entry.endsWith('.tmp');
    if (isUnfinished) await promises.rm(join(dirname(path), entry));
  }
}

async function flushDirectory(fs: FileSystem, path: string): Promise<void> {
  const directory = await fs.open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
