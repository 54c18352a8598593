import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import * as promises from 'node:fs/promises';
import { join } from 'node:path';
import { lockDirectory } from '../../src/auth-server/storage/data-directory';
import type { LockFiles } from '../../src/auth-server/storage/data-directory';
import { movedSince } from '../../src/auth-server/storage/state';
import type { ClientRow, State } from '../../src/auth-server/storage/state';
import { closeAll, newDirectory } from './fixtures';

afterEach(closeAll);

const DEAD = '4194304';
const failure = (code: string): Error => Object.assign(new Error(code), { code });

/** What the lock of a live process holds. */
function identityOf(pid: number): string {
  if (!existsSync(`/proc/${pid}/stat`)) return String(pid);
  const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return `${pid} ${status.slice(status.lastIndexOf(')') + 2).split(' ')[19]}`;
}

/** The real calls; the first one of a name is made otherwise. */
function firstCall<Name extends keyof LockFiles>(name: Name, other: () => Promise<unknown>): LockFiles {
  let left = 1;
  const call = promises[name] as (...args: unknown[]) => Promise<unknown>;
  return { ...promises, [name]: (...args: unknown[]) => (left-- > 0 ? other() : call(...args)) };
}

it('takes a lock that is released while it looks at it', async () => {
  const directory = newDirectory();
  const release = await lockDirectory(
    directory,
    firstCall('link', () => Promise.reject(failure('EEXIST'))),
  );
  expect(readFileSync(join(directory, 'lock'), 'utf8')).toBe(identityOf(process.pid));
  await release();
  expect(readdirSync(directory)).toEqual([]);
});

it('gives back the lock of a process that has taken it from the dead one first', async () => {
  const directory = newDirectory();
  const lock = join(directory, 'lock');
  writeFileSync(lock, identityOf(process.ppid));
  const files = firstCall('readFile', () => Promise.resolve(DEAD));
  await expect(lockDirectory(directory, files)).rejects.toThrow(`is in use by process ${process.ppid}`);
  expect(readFileSync(lock, 'utf8')).toBe(identityOf(process.ppid));
  expect(readdirSync(directory)).toEqual(['lock']);
});

it('tries again when another process was quicker to remove a dead lock', async () => {
  const directory = newDirectory();
  writeFileSync(join(directory, 'lock'), DEAD);
  const files = firstCall('rename', () => Promise.reject(failure('ENOENT')));
  await (
    await lockDirectory(directory, files)
  )();
  expect(readdirSync(directory)).toEqual([]);
});

it.each(['link', 'rename'] as const)('fails with the file system: %s', async (name) => {
  const directory = newDirectory();
  writeFileSync(join(directory, 'lock'), DEAD);
  const files = firstCall(name, () => Promise.reject(failure('EPERM')));
  await expect(lockDirectory(directory, files)).rejects.toMatchObject({ code: 'EPERM' });
  expect(readdirSync(directory)).toEqual(['lock']);
  await (
    await lockDirectory(directory)
  )();
});

it('other requests are served while many rows are looked through', async () => {
  const row = (movedAt: number) => ({ movedAt }) as ClientRow;
  const clients = new Map(Array.from({ length: 40_001 }, (_, n) => [`c${n}`, row(n)]));
  let turns = 0;
  let isDone = false;
  const moved = movedSince({ clients } as unknown as State, 40_000).finally(() => (isDone = true));
  while (!isDone) {
    await new Promise(setImmediate);
    turns++;
  }
  expect(await moved).toEqual([row(40_000)]);
  expect(turns).toBeGreaterThanOrEqual(2);
  let isQuick = false;
  void movedSince({ clients: new Map([['a', row(1)]]) } as unknown as State, 0).then(() => (isQuick = true));
  await Promise.resolve();
  await Promise.resolve();
  expect(isQuick).toBe(true);
});
