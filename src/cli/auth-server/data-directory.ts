import { randomBytes } from 'node:crypto';
import * as files from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Makes a directory that only this user can change and git ignores; throws an Error that says what to do. */
export async function prepareDataDirectory(path: string, ownUid = process.getuid?.()): Promise<void> {
  try {
    await files.mkdir(path, { recursive: true, mode: 0o700 });
    await requirePrivate(path, ownUid);
    await files.writeFile(join(path, '.gitignore'), '*\n', { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    // A disk that cannot be written is found at the start, not by the first change.
    const probe = join(path, 'state.json.probe.tmp');
    await writeDurably(probe, '.');
    await files.rm(probe);
  } catch (error) {
    throw describeDiskError(path, error);
  }
}

/** Another user who can write here, or may change the mode, could replace the keys. Windows has neither owner nor mode. */
async function requirePrivate(path: string, ownUid: number | undefined): Promise<void> {
  const { mode, uid } = await files.stat(path);
  if (ownUid === undefined) return;
  if (uid !== ownUid) {
    throw new Error(
      `the data directory ${path} belongs to another user (uid ${uid}, this process has ${ownUid}): choose a directory of your own, or run chown ${ownUid} ${path}`,
    );
  }
  if ((mode & 0o022) === 0) return;
  const octal = (mode & 0o777).toString(8);
  throw new Error(`other users can write to the data directory ${path} (mode ${octal}): run chmod go-w ${path}`);
}

/** Puts an error of the file system into words; other errors stay as they are. */
export function describeDiskError(path: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return error;
  const remedy = code === 'ENOSPC' ? 'make room on its disk' : 'make it writable, or choose another';
  return new Error(`the data directory ${path} cannot be written (${code}): ${remedy}`, { cause: error });
}

/**
 * Replaces a file as a whole: writes a new file next to it that only the owner can read, flushes it, and renames it. Once
 * this resolves, neither `kill -9` nor a power cut can lose or tear the file. Not by write-file-atomic 7: it takes a
 * write that stopped half-way on a full disk for a whole one.
 *
 * @param beforeRename - rejects to leave `path` as it is
 * @throws Error of the file system; `path` is then as it was.
 */
export async function writeDurably(
  path: string,
  text: string,
  fs: Pick<typeof files, 'writeFile' | 'open' | 'rename' | 'rm'> = files,
  beforeRename: () => Promise<void> = async () => {},
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    // Exclusive: neither an existing file nor a symbolic link in its place is written through.
    await fs.writeFile(temporary, text, { flag: 'wx', mode: 0o600, flush: true });
    await beforeRename();
    await fs.rename(temporary, path);
  } catch (error) {
    // A half-written file may be what fills the disk. A failure to remove it must not hide the first error.
    await fs.rm(temporary).catch(() => {});
    throw error;
  }
  // Makes the rename itself survive a power cut. Some systems cannot flush a directory (Windows).
  const directory = await fs.open(dirname(path), 'r').catch(() => undefined);
  await directory?.sync().catch(() => {});
  await directory?.close();
}
