import { link, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A directory that belongs to this process. */
export interface DirectoryLock {
  release(): Promise<void>;
}

/** Within one process the pid says nothing. */
const heldHere = new Set<string>();

/**
 * Takes a directory for this process, by a file `lock` with its pid. A lock whose process is dead (`kill -9`) is taken over.
 *
 * @throws Error when another process, or another server of this process, has the directory.
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const path = join(await realpath(directory), 'lock');
  if (heldHere.has(path)) throw inUse(directory, 'another token server of this process');
  heldHere.add(path);
  try {
    await take(directory, path);
  } catch (error) {
    heldHere.delete(path);
    throw error;
  }
  return {
    async release() {
      // What cannot be removed (the disk is read-only by now) stops nobody: its process will be dead.
      if (heldHere.delete(path)) await rm(path, { force: true }).catch(() => {});
    },
  };
}

async function take(directory: string, path: string): Promise<void> {
  const own = `${path}.${process.pid}`;
  try {
    await writeFile(own, await identify(process.pid), { mode: 0o600 });
    for (;;) {
      // A link, unlike a new file, is never seen empty.
      if (await succeeds(link(own, path), 'EEXIST')) return;
      const holder = await readHolder(directory, path);
      if (await isAlive(holder)) throw inUse(directory, `process ${holder.split(' ')[0]}`, path);
      await moveAway(path, holder);
    }
  } finally {
    await rm(own, { force: true }).catch(() => {});
  }
}

/** Nobody, where it has been released meanwhile. What cannot be read, another user's say, may be a live one. */
async function readHolder(directory: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return '';
    throw inUse(directory, `a process that cannot be told (${code})`, path);
  }
}

/** Two processes may find the same dead holder: only the one that moves exactly that lock away goes on. */
async function moveAway(path: string, holder: string): Promise<void> {
  const away = `${path}.dead-${process.pid}`;
  if (!(await succeeds(rename(path, away), 'ENOENT'))) return;
  const moved = await readFile(away, 'utf8');
  if (moved !== holder) await succeeds(link(away, path), 'EEXIST');
  await rm(away, { force: true });
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

/** The pid, and where the system tells it the start of the process: in containers pids come back quickly. */
async function identify(pid: number): Promise<string> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // Field 22 of proc(5); the name in the second field may hold blanks and parentheses.
  const started = status.slice(status.lastIndexOf(')') + 2).split(' ')[19];
  return started === undefined ? String(pid) : `${pid} ${started}`;
}

/** Whether the call succeeds; `false` for the one error code that is expected. */
async function succeeds(call: Promise<void>, expected: string): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === expected) return false;
    throw error;
  }
}

function inUse(directory: string, holder: string, path?: string): Error {
  const remedy = path ? `stop it first, or delete ${path} if it is no token server` : 'close it first';
  return new Error(`the data directory ${directory} is in use by ${holder}: ${remedy}`);
}
