import { randomBytes } from 'node:crypto';
import { mkdir, readFile, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** Makes a directory that only its owner can change and git ignores; throws an Error that says what to do. */
export async function prepareDataDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await requirePrivate(path);
    await writeFile(join(path, '.gitignore'), '*\n', { flag: 'wx' }).catch(ignoreExisting);
  } catch (error) {
    throw describeDiskError(path, error);
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
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

/** What an attempt to take a lock has brought: what releases it, or who has it. */
export type LockAttempt = { readonly release: () => Promise<void> } | { readonly holder: string };

/**
 * Takes a directory for this process; returns what releases it.
 *
 * @throws Error when another process, or another server of this process, has the directory.
 */
export async function lockDirectory(directory: string): Promise<() => Promise<void>> {
  const attempt = await tryLock(join(directory, 'lock'));
  if ('release' in attempt) return attempt.release;
  throw new Error(`the data directory ${directory} is in use by ${attempt.holder}: stop it first`);
}

/** Locks of this process, which all have the same pid. */
const heldHere = new Set<string>();
const RETRY_MS = 10;
const MAX_RETRIES = 500;
const HELD = '.held';

/**
 * Takes a lock for this process, if no live process of this machine has it. Each process has a file of its own,
 * `<path>.<time>.<pid>.<start>.<random>`, which it writes before it looks for others: of two, at least one sees the
 * other. No name is used twice, so removing the file of a dead process never removes another's lock.
 */
export async function tryLock(path: string): Promise<LockAttempt> {
  const directory = await realpath(dirname(path));
  const prefix = `${basename(path)}.`;
  const key = join(directory, prefix);
  if (heldHere.has(key)) return { holder: 'another token server of this process' };
  heldHere.add(key);
  const random = randomBytes(6).toString('hex');
  const own = `${prefix}${Date.now()}.${process.pid}.${await startOf(process.pid)}.${random}`;
  // With a text, so that a disk without room is noticed here.
  const write = (name: string): Promise<void> =>
    writeFile(join(directory, name), `${process.pid}\n`, { flag: 'wx', mode: 0o600 });

  async function release(): Promise<void> {
    for (const name of [own + HELD, own]) {
      // If it cannot be removed (a read-only disk), it names a dead process soon.
      await rm(join(directory, name), { force: true }).catch(() => {});
    }
    heldHere.delete(key);
  }
  try {
    await write(own);
    for (let retry = 0; ; retry++) {
      const others = await othersOf(directory, prefix, own);
      const [earliest] = others;
      if (earliest === undefined) {
        await write(own + HELD);
        return { release };
      }
      // While none has the lock, all but the earliest give up, and the earliest waits for that: so one gets it.
      const holder = others.find((name) => name.endsWith(HELD)) ?? earliest;
      if (holder.endsWith(HELD) || holder < own || retry === MAX_RETRIES) {
        await release();
        return { holder: `process ${holder.slice(prefix.length).split('.')[1]}` };
      }
      await wait(RETRY_MS);
    }
  } catch (error) {
    await release();
    throw error;
  }
}

/** The locks of other live processes, earliest first. Removes those of dead ones (`kill -9`). */
async function othersOf(directory: string, prefix: string, own: string): Promise<string[]> {
  const others: string[] = [];
  for (const name of await readdir(directory)) {
    if (!name.startsWith(prefix) || name === own) continue;
    const [, pid, started] = /^\d+\.([1-9]\d{0,8})\.(\d+)\.[0-9a-f]+(\.held)?$/.exec(name.slice(prefix.length)) ?? [];
    if (pid === undefined) continue;
    if (await isAlive(Number(pid), started)) others.push(name);
    else await rm(join(directory, name), { force: true });
  }
  return others.sort();
}

async function isAlive(pid: number, started: string | undefined): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Another user's process is alive too.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  const known = await startOf(pid);
  // Without start times, a lock of our own pid is one of an earlier process: this one's are in `heldHere`.
  return known === UNKNOWN_START ? pid !== process.pid : known === started;
}

const UNKNOWN_START = '0';

/** On Linux the start time of a process: in containers, pids are soon used again. */
async function startOf(pid: number): Promise<string> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // Field 22 of proc(5); the name in the second field may hold blanks and parentheses.
  return status.slice(status.lastIndexOf(')') + 2).split(' ')[19] ?? UNKNOWN_START;
}
