import { randomBytes } from 'node:crypto';
import * as promises from 'node:fs/promises';
import { mkdir, readFile, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** Makes a directory that only its owner can change and git ignores; throws an Error that says what to do. */
export async function prepareDataDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await requirePrivate(path);
    await writeFile(join(path, '.gitignore'), '*\n', { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } catch (error) {
    throw describeDiskError(path, error);
  }
}

/** Another user who can write here could replace the keys. Windows has no such permission bits. */
async function requirePrivate(path: string): Promise<void> {
  const { mode } = await stat(path);
  if (process.platform === 'win32' || (mode & 0o022) === 0) return;
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
 * @throws Error of the file system; `path` is then as it was.
 */
export async function writeDurably(
  path: string,
  text: string,
  fs: Pick<typeof promises, 'writeFile' | 'open' | 'rename' | 'rm'> = promises,
): Promise<void> {
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
  const directory = await fs.open(dirname(path), 'r').catch(() => undefined);
  await directory?.sync().catch(() => {});
  await directory?.close();
}

/** Locks of this process, which all have the same pid. */
const heldHere = new Set<string>();
const MAX_TRIES = 12;
const RETRY_MS = 25;

/**
 * Takes a lock for this process, if no live process of this machine has it; resolves with what releases it, or with who
 * has it. Each process writes a file of its own, `<path>.<pid>.<start>.<random>`, before it looks for others: of two, at
 * least one sees the other and steps back. No name is used twice, so removing the file of a dead process never removes
 * the lock of another. proper-lockfile knows a dead holder by the age of its file alone.
 */
export async function tryLock(path: string): Promise<{ release: () => Promise<void> } | { holder: string }> {
  const directory = await realpath(dirname(path));
  const key = join(directory, basename(path));
  if (heldHere.has(key)) return { holder: 'another token server of this process' };
  heldHere.add(key);
  const own = `${key}.${process.pid}.${await startOf(process.pid)}.${randomBytes(6).toString('hex')}`;

  async function release(): Promise<void> {
    // If it cannot be removed (a read-only disk), it names a dead process soon.
    await rm(own, { force: true }).catch(() => {});
    heldHere.delete(key);
  }
  try {
    for (let tries = 1; ; tries++) {
      // With a text, so that a disk without room is noticed here.
      await writeFile(own, `${process.pid}\n`, { flag: 'wx', mode: 0o600 });
      const holder = await liveHolder(key, own);
      if (holder === undefined) return { release };
      await rm(own);
      if (tries === MAX_TRIES) {
        await release();
        return { holder: `process ${holder}` };
      }
      // Processes that start together step back for different times, so one of them gets it.
      await wait(Math.random() * RETRY_MS);
    }
  } catch (error) {
    await release();
    throw error;
  }
}

/** The pid of another live process that has the lock or tries to. Removes the files of dead ones (`kill -9`). */
async function liveHolder(key: string, own: string): Promise<number | undefined> {
  for (const name of await readdir(dirname(key))) {
    const file = join(dirname(key), name);
    if (!file.startsWith(`${key}.`) || file === own) continue;
    const [, pid, start] = /^([1-9]\d{0,8})\.(\d+)\.[0-9a-f]+$/.exec(file.slice(key.length + 1)) ?? [];
    if (pid === undefined) continue;
    if (await isAlive(Number(pid), start)) return Number(pid);
    await rm(file, { force: true });
  }
  return undefined;
}

async function isAlive(pid: number, start: string | undefined): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Another user's process is alive too.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  const known = await startOf(pid);
  // Without start times, a lock of our own pid is one of an earlier process: this one's are in `heldHere`.
  return known === UNKNOWN_START ? pid !== process.pid : known === start;
}

const UNKNOWN_START = '0';

/** On Linux the start time of a process: in containers, pids are soon used again. */
async function startOf(pid: number): Promise<string> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // Field 22 of proc(5); the name in the second field may hold blanks and parentheses.
  return status.slice(status.lastIndexOf(')') + 2).split(' ')[19] ?? UNKNOWN_START;
}
