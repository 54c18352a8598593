import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { EXIT, write } from './command';
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
export async function runWatched({ stderr, untilStopped }: CliIo): Promise<number> {
  const stopped = untilStopped();
  for (;;) {
    const [, script = '', ...args] = process.argv;
    const argv = [...process.execArgv, script, ...args.filter((arg) => arg !== '--watch')];
    const changes = await watchSources(process.cwd());
    const child = spawn(process.execPath, argv, { stdio: 'inherit' });
    const ended = once(child, 'exit');
    try {
      const first = await Promise.race([
        stopped,
        changes.next,
        ended.then(([code]) => ({ code: code as number | null })),
      ]);
      if (typeof first === 'object') {
        write(stderr, `tillgate: ended with exit code ${first.code}; starts again when a file changes`);
      }
      const changed = typeof first === 'object' ? await Promise.race([stopped, changes.next]) : first;
      child.kill();
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
      await ended;
      clearTimeout(late);
      if (changed === undefined) return EXIT.ok;
      write(stderr, `tillgate: ${changed} has changed, starts again`);
    } finally {
      changes.close();
    }
  }
}

interface Changes {
  /** Resolves with the name of a file that has changed. */
  readonly next: Promise<string>;
  readonly close: () => void;
}

/** Watches directories, not files: most editors replace a file when they save it. */
async function watchSources(root: string): Promise<Changes> {
  const directories = await directoriesBelow(root);
  let changed: (name: string) => void;
  const first = new Promise<string>((resolve) => (changed = resolve));
  const watchers = directories.map((directory) =>
    watch(directory, (_event, name) => void (name !== null && SOURCE.test(name) && changed(name))),
  );
  return {
    next: first.then((name) => wait(SETTLE_MS, name)),
    close: () => watchers.forEach((watcher) => watcher.close()),
  };
}

async function directoriesBelow(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  const below = entries.filter((entry) => entry.isDirectory() && !IGNORED.test(entry.name));
  const deeper = await Promise.all(below.map(({ name }) => directoriesBelow(join(directory, name))));
  return [directory, ...deeper.flat()];
}
