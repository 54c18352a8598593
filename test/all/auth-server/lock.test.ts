import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tryLock } from '../../../src/auth-server/data-directory';
import { COMPILED } from '../support/compiled';
import { closeAll, newDirectory } from '../../auth-server/fixtures';

const children: ChildProcess[] = [];
afterEach(async () => {
  await Promise.all(children.splice(0).map(kill));
  await closeAll();
});

/** A process that takes the lock of each directory that it is sent, and keeps it. */
async function newProcess(): Promise<ChildProcess> {
  const child = fork(join(COMPILED, 'test/all/auth-server/lock-child.js'));
  children.push(child);
  await once(child, 'message');
  return child;
}

/** `held`, or who has it. */
async function outcomeOf(child: ChildProcess, directory: string): Promise<string> {
  const outcome = once(child, 'message') as Promise<[string]>;
  child.send(directory);
  return (await outcome)[0];
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

const startOf = (pid: number): string => {
  if (!existsSync(`/proc/${pid}/stat`)) return '0';
  const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return status.slice(status.lastIndexOf(')') + 2).split(' ')[19] ?? '0';
};
/** Name of a lock: of this test's parent, which is alive. */
const lockName = ({ pid = process.ppid, start = startOf(process.ppid) } = {}): string =>
  `lock.${pid}.${start}.0123456789ab`;

/** Takes the lock of a directory; throws who has it. */
async function lockDirectory(directory: string): Promise<() => Promise<void>> {
  const lock = await tryLock(join(directory, 'lock'));
  if ('release' in lock) return lock.release;
  throw new Error(lock.holder);
}

it('of three processes that start together one has the directory, 20 times, also after a dead one', async () => {
  const starting = await Promise.all([newProcess(), newProcess(), newProcess()]);
  for (let round = 0; round < 20; round++) {
    const directory = newDirectory();
    if (round % 2 === 0) writeFileSync(join(directory, lockName({ pid: 4_194_304 })), '');
    const outcomes = await Promise.all(starting.map((child) => outcomeOf(child, directory)));
    const refused = outcomes.filter((outcome) => outcome !== 'held');
    expect(refused).toHaveLength(2);
    const holders = starting.map(({ pid }) => `process ${pid}`);
    for (const holder of refused) expect(holders).toContain(holder);
  }
});

it('is taken over from a process that was killed, and by one of several', async () => {
  const directory = newDirectory();
  const first = await newProcess();
  expect(await outcomeOf(first, directory)).toBe('held');
  await kill(first);
  const next = await Promise.all([newProcess(), newProcess()]);
  const outcomes = await Promise.all(next.map((child) => outcomeOf(child, directory)));
  expect(outcomes.filter((outcome) => outcome === 'held')).toHaveLength(1);
});

it('leaves nothing behind when it is released, and can be taken again', async () => {
  const directory = newDirectory();
  for (let round = 0; round < 2; round++) {
    const release = await lockDirectory(directory);
    expect(readdirSync(directory)).toHaveLength(1);
    await release();
    expect(readdirSync(directory)).toEqual([]);
  }
});

it('gives up for a live process, and leaves its lock alone', async () => {
  const directory = newDirectory();
  const other = lockName();
  writeFileSync(join(directory, other), '');
  await expect(lockDirectory(directory)).rejects.toThrow(new Error(`process ${process.ppid}`));
  expect(readdirSync(directory)).toEqual([other]);
});

it('ignores files that are no locks', async () => {
  const directory = newDirectory();
  const names = ['lock', 'lock.txt', 'lock.0.1.0123456789ab', 'locks.7.1.0123456789ab'];
  for (const name of names) writeFileSync(join(directory, name), '');
  const release = await lockDirectory(directory);
  await release();
  expect(readdirSync(directory).sort()).toEqual([...names].sort());
});

it('two locks of one directory do not exclude each other', async () => {
  const directory = newDirectory();
  const release = await lockDirectory(directory);
  const other = await tryLock(join(directory, 'credentials.json.lock'));
  expect(other).toHaveProperty('release');
  expect(await tryLock(join(directory, 'credentials.json.lock'))).toEqual({
    holder: 'another token server of this process',
  });
  if ('release' in other) await other.release();
  await release();
  expect(readdirSync(directory)).toEqual([]);
});

it('fails with the file system, and is free after that', async () => {
  const missing = join(newDirectory(), 'missing');
  await expect(lockDirectory(missing)).rejects.toMatchObject({ code: 'ENOENT' });
  const directory = newDirectory();
  const dead = join(directory, lockName({ pid: 4_194_304 }));
  // A directory in the place of a lock cannot be removed as a file.
  mkdirSync(dead);
  await expect(lockDirectory(directory)).rejects.toMatchObject({ code: 'ERR_FS_EISDIR' });
  rmdirSync(dead);
  await (
    await lockDirectory(directory)
  )();
  expect(readdirSync(directory)).toEqual([]);
});
