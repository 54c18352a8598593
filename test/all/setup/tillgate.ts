import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { COMPILED } from '../support/compiled';
import { collect, started, stop } from './process';

const ROOT = join(__dirname, '../../..');

/** What `tillgate dev` prints at its first start, as far as tests use it. */
export interface DevReport {
  readonly base_url: string;
  readonly auth_url: string;
  readonly clients: readonly { readonly client_id: string; readonly client_secret: string }[];
}

/** The `tillgate` command, running until it is stopped. */
export interface RunningTillgate<Report> {
  /** What the command printed when it was ready. */
  readonly report: Report;
  /** All that it has printed so far. */
  stdout(): string;
  /** Its log so far: JSON lines. */
  log(): string;
  stop(): Promise<void>;
}

/**
 * Runs `tillgate <command> --json` from the sources in a process of its own, and waits for what it prints.
 *
 * @param variables - `TILLGATE_*` variables; none is inherited
 * @param flags - of Node
 * @throws Error with its log, when it ends before that
 */
export async function startTillgate<Report>(
  command: 'serve' | 'dev',
  variables: Readonly<Record<`TILLGATE_${string}`, string>>,
  flags: readonly string[] = [],
): Promise<RunningTillgate<Report>> {
  const args = [...flags, join(COMPILED, 'src/cli/main.js'), command, '--json'];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...withoutTillgate(process.env), ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, log] = [collect(child.stdout), collect(child.stderr)];
  const printed = new Promise<Report>((resolve, reject) => {
    child.stdout.on('data', () => {
      const document = parsed(stdout());
      if (document !== undefined) resolve(document as Report);
    });
    child.once('error', reject);
    child.once('close', (code) => reject(new Error(`tillgate ${command} ended (exit ${code}). It wrote:\n${log()}`)));
  });
  return { report: await started(child, printed), stdout, log, stop: () => stop(child) };
}

/** A document that is still being printed is none yet. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function withoutTillgate(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('TILLGATE_')));
}
