import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { write } from './command';
import type { CliIo } from './command';

/** Not .json: apps write data. */
const SOURCE = /\.([cm]?[jt]sx?|ya?ml)$/;
const IGNORED = /^(\..*|node_modules)$/;
/** An editor may write several files, and each of them in several steps. */
const SETTLE_MS = 100;
/** What was registered survives a kill. */
const STOP_WITHIN_MS = 2_000;

/**
 * Runs this command line without `--watch` in a process of its own, and starts it again when a source file below the
 * current directory changes. `node --watch` does not notice a second change of a file that an editor replaces.
 */
export async function runWatched({ stderr, untilStopped }: CliIo): Promise<void> {
  const stopped = untilStopped();
  const [, script = '', ...args] = process.argv;
  const argv = [...process.execArgv, script, ...args.filter((arg) => arg !== '--watch')];
  for (;;) {
    const watching = new AbortController();
    const change = nextChange(process.cwd(), watching.signal);
    const child = spawn(process.execPath, argv, { stdio: 'inherit' });
    const ended = once(child, 'exit').then(([code]) => {
      if (watching.signal.aborted) return;
      write(stderr, `tillgate: ended with exit code ${code}; starts again when a file changes`);
    });
    const changed = await Promise.race([stopped, change]);
    watching.abort();
    child.kill();
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    await ended;
    clearTimeout(late);
    if (changed === undefined) return;
    write(stderr, `tillgate: ${changed} has changed, starts again`);
  }
}

/** Resolves with the name of a file that has changed. Watches directories: most editors replace a file when they save it. */
function nextChange(root: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    for (const directory of directoriesBelow(root)) {
      watch(directory, { signal }, (_event, name) => {
        if (name !== null && SOURCE.test(name)) setTimeout(resolve, SETTLE_MS, name);
      });
    }
  });
}

function directoriesBelow(directory: string): readonly string[] {
  const entries = readdirSync(directory, { withFileTypes: true });
  const below = entries.filter((entry) => entry.isDirectory() && !IGNORED.test(entry.name));
  return [directory, ...below.flatMap(({ name }) => directoriesBelow(join(directory, name)))];
}
