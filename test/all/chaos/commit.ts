import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { node, npm } from '../package/npm';
import type { Ended } from '../package/npm';

const ROOT = join(__dirname, '../../..');

/** Another commit of this repository, with the packages of its own lock file. */
export interface BuiltCommit {
  /** Its compiled sources and the scripts of its chaos run. */
  readonly compiled: string;
  /** Removes its worktree. */
  remove(): void;
}

/**
 * Makes a worktree of a commit below the folder of temporary files, installs and builds it there, and has it compile its own scripts.
 * What it made is removed where one of the steps fails, and when this process ends.
 */
export async function buildCommit(commit: string): Promise<BuiltCommit> {
  const folder = mkdtempSync(join(tmpdir(), 'tillgate-commit-'));
  function remove(): void {
    rmSync(folder, { recursive: true, force: true });
    execFileSync('git', ['worktree', 'prune'], { cwd: ROOT });
  }
  process.once('exit', remove);
  try {
    execFileSync('git', ['worktree', 'add', '--quiet', '--detach', folder, commit], { cwd: ROOT });
    succeeded('npm ci', await npm(folder, 'ci'));
    succeeded('npm run build', await npm(folder, 'run', '-s', 'build'));
    const compile = "require('./test/all/setup/run-folder.cjs').compileSources()";
    succeeded('compileSources()', await node(folder, '-e', compile));
  } catch (error) {
    remove();
    throw error;
  }
  return { compiled: join(folder, '.test-build'), remove };
}

function succeeded(step: string, { exitCode, output, errors }: Ended): void {
  if (exitCode !== 0) throw new Error(`${step} of the other commit ended with ${exitCode}:\n${output}${errors}`);
}
