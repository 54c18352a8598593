import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { newDataDir } from './data-dir';
import { cliScene } from './harness';
import type { CliScene, Outcome } from './harness';

const ROOT = join(__dirname, '../..');
/** The scaffold as a command, from its sources. */
export const SCAFFOLD = [
  ...['--', process.execPath, '--conditions=source', '-r', join(ROOT, 'scripts/run-sources.cjs')],
  join(ROOT, 'src/app/main.ts'),
];

/** A command that does nothing until it is stopped. */
export const IDLE = ['--', process.execPath, '-e', 'setInterval(() => {}, 1e6)'];

/** What `dev --json` prints. */
interface DevReport {
  /** Absent with `--token-server`. */
  readonly base_url?: string;
  readonly auth_url: string;
  readonly audience: string;
  readonly clients: readonly { readonly client_id: string; readonly client_secret: string; readonly scope: string }[];
}

/** Runs `dev`, without arguments with the scaffold, until it is ready, then `work` with a command line next to it, and stops. */
export async function whileDevRuns(
  argv: readonly string[],
  work: (run: CliScene['run'], report: DevReport) => Promise<void> = async () => {},
  env: Record<string, string> = {},
  dataDir = newDataDir(),
): Promise<Outcome & { report: DevReport }> {
  let failure: Error | undefined;
  const scene = cliScene({
    dataDir,
    env: { TILLGATE_PORT: '0', TILLGATE_AUTH_PORT: '0', TILLGATE_LOG_LEVEL: 'silent', ...env },
    fetch,
    async untilStopped() {
      const report = JSON.parse(scene.output()) as DevReport;
      const ports = {
        TILLGATE_AUTH_PORT: new URL(report.auth_url).port,
        ...(report.base_url !== undefined && { TILLGATE_PORT: new URL(report.base_url).port }),
      };
      if (argv.length === 0) await reachable(`${report.base_url}/livez`, new Promise(() => {}));
      const other = cliScene({ env: { TILLGATE_DATA_DIR: dataDir, ...ports }, fetch });
      // The command would report it as a failure of its own.
      await work(other.run, report).catch((error: unknown) => (failure = error as Error));
    },
  });
  const outcome = await scene.run('dev', '--json', ...(argv.length === 0 ? SCAFFOLD : argv));
  const report = (outcome.stdout === '' ? undefined : JSON.parse(outcome.stdout)) as DevReport;
  if (failure !== undefined) throw failure;
  return { ...outcome, report };
}

/** Resolves when a server responds, or when it cannot any more: the scaffold starts as a process of its own. */
export async function reachable(url: string, ended: Promise<unknown>): Promise<void> {
  let isOver = false;
  void ended.then(() => (isOver = true));
  const responds = (): Promise<boolean> =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!isOver && !(await responds())) await pause(20);
}
