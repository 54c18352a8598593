import { newDataDir } from './data-dir';
import { cliScene } from './harness';
import type { CliScene, Outcome } from './harness';

/** What `dev --json` prints. */
interface DevReport {
  /** Absent with `--token-server`. */
  readonly base_url?: string;
  readonly auth_url: string;
  readonly audience: string;
  readonly clients: readonly { readonly client_id: string; readonly client_secret: string; readonly scope: string }[];
}

/** Runs `dev` until it is ready, then `work` with a command line next to it, and stops. */
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
      const other = cliScene({ env: { TILLGATE_DATA_DIR: dataDir, ...ports }, fetch });
      // The command would report it as a failure of its own.
      await work(other.run, report).catch((error: unknown) => (failure = error as Error));
    },
  });
  const outcome = await scene.run('dev', '--json', ...argv);
  const report = (outcome.exitCode === 0 ? JSON.parse(outcome.stdout) : undefined) as DevReport;
  if (failure !== undefined) throw failure;
  return { ...outcome, report };
}
