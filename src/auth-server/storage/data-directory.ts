import { randomBytes } from 'node:crypto';
import * as promises from 'node:fs/promises';
import { mkdir, readFile, realpath, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Makes a directory that only its owner can change and git ignores; throws an Error that says what to do. */
export async function prepareDataDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await requirePrivate(path);
    await succeeds(writeFile(join(path, '.gitignore'), '*\n', { flag: 'wx' }), 'EEXIST');
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

/** The calls of `node:fs/promises` that a lock makes. */
export type LockFiles = Pick<typeof promises, 'link' | 'readFile' | 'rename' | 'rm' | 'writeFile'>;

/** Locks of this process, which all have the same pid. */
const heldHere = new Set<string>();

/**
 * Takes a directory for this process, with a file `lock` that holds its pid; returns what releases it. The lock of a dead
 * process (`kill -9`) is taken over immediately.
 *
 * @throws Error when another process, or another server of this process, has the directory.
 */
export async function lockDirectory(directory: string, fs: LockFiles = promises): Promise<() => Promise<void>> {
  const path = join(await realpath(directory), 'lock');
  if (heldHere.has(path)) {
    throw new Error(
      `the data directory ${directory} is in use by another token server of this process: close it first`,
    );
  }
  heldHere.add(path);
  try {
    await takeLock(directory, path, fs);
  } catch (error) {
    heldHere.delete(path);
    throw error;
  }
  return async function release() {
    // If the file cannot be removed (a read-only disk), it names a dead process soon.
    if (heldHere.delete(path)) await fs.rm(path).catch(() => {});
  };
}

async function takeLock(directory: string, path: string, fs: LockFiles): Promise<void> {
  const own = uniqueName(path);
  try {
    await fs.writeFile(own, await identify(process.pid), { mode: 0o600, flag: 'wx' });
    // A link, unlike a new file, is never seen empty.
    while (!(await succeeds(fs.link(own, path), 'EEXIST'))) {
      // An unreadable lock (of another user) may have a live holder.
      const holder = await fs.readFile(path, 'utf8').catch(({ code }: NodeJS.ErrnoException) => {
        if (code === 'ENOENT') return '';
        throw inUse(directory, `an unknown process (${code})`, path);
      });
      if (await isAlive(holder)) throw inUse(directory, `process ${holder.split(' ')[0]}`, path);
      await removeDead(path, holder, fs);
    }
  } finally {
    await fs.rm(own).catch(() => {});
  }
}

/** Several processes may find the same dead holder; the rename of exactly that lock succeeds for one of them. */
async function removeDead(path: string, holder: string, fs: LockFiles): Promise<void> {
  const away = uniqueName(path);
  if (!(await succeeds(fs.rename(path, away), 'ENOENT'))) return;
  // Another process may have taken the lock since it was read: then give it back.
  if ((await fs.readFile(away, 'utf8')) !== holder) await succeeds(fs.link(away, path), 'EEXIST');
  await fs.rm(away);
}

async function isAlive(holder: string): Promise<boolean> {
  const pid = Number(holder.split(' ')[0]);
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  return (await identify(pid)) === holder;
}

/** The pid, and on Linux the start time of the process: in containers, pids are soon used again. */
async function identify(pid: number): Promise<string> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // Field 22 of proc(5); the name in the second field may hold blanks and parentheses.
  const started = status.slice(status.lastIndexOf(')') + 2).split(' ')[19];
  return started === undefined ? String(pid) : `${pid} ${started}`;
}

/** Whether the call succeeds; `false` for the one error code that is expected. */
function succeeds(call: Promise<void>, expected: string): Promise<boolean> {
  return call.then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === expected) return false;
      throw error;
    },
  );
}

function uniqueName(path: string): string {
  return `${path}.${randomBytes(6).toString('hex')}`;
}

function inUse(directory: string, holder: string, path: string): Error {
  return new Error(
    `the data directory ${directory} is in use by ${holder}: stop it first, or delete ${path} if it is not a token server`,
  );
}
