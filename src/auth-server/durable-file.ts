import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Replaces a file as a whole; once it resolves, neither `kill -9` nor a power cut can lose or tear it. */
export type WriteFile = (path: string, text: string) => Promise<void>;

/**
 * Writes beside the file, flushes, and renames over it. Readable for its owner only.
 *
 * @throws Error of the file system; the file is then as it was.
 */
export async function writeDurably(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  try {
    await writeAndFlush(temporary, text);
    await rename(temporary, path);
  } catch (error) {
    // What is left may be what fills the disk. That this can fail too must not hide the first error.
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
  // The rename itself: done for every process, but not yet for a power cut. Where a directory cannot be flushed
  // (Windows), nothing better can be had.
  await flushDirectory(dirname(path)).catch(() => {});
}

async function writeAndFlush(path: string, text: string): Promise<void> {
  const file = await open(path, 'w', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
