import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { COMPILED } from '../support/compiled';
import { freePort } from '../support/free-port';
import { collect, started, stop } from './process';

const ROOT = join(__dirname, '../../..');

/** What `tillgate dev` prints at its first start, as far as tests use it. */
export interface DevReport {
  readonly base_url: string;
  readonly auth_url: string;
  readonly clients: readonly { readonly client_id: string; readonly client_secret: string }[];
}

/** The scaffold, with or without `tillgate dev`, running until it is stopped. */
export interface RunningTillgate<Report> {
  /** What `tillgate dev` printed; of the app alone, where it listens. */
  readonly report: Report;
  /** All that it has printed so far. */
  stdout(): string;
  /** Its log so far: JSON lines. */
  log(): string;
  stop(): Promise<void>;
}

const [COMMAND, APP] = [join(COMPILED, 'src/cli/main.js'), join(COMPILED, 'src/app/main.js')];

/**
 * Runs the scaffold in processes of their own: by itself (`app`), or as the command of `tillgate dev --json`. Waits until
 * the API listens.
 *
 * @param variables - `TILLGATE_*` variables; none is inherited
 * @param flags - of Node, for the process of the scaffold
 * @throws Error with its log, when it ends before that
 */
export async function startTillgate<Report>(
  program: 'app' | 'dev',
  variables: Readonly<Record<`TILLGATE_${string}`, string>>,
  flags: readonly string[] = [],
): Promise<RunningTillgate<Report>> {
  // The scaffold's own URL is made from its port: 0 would be part of it. `tillgate dev` finds a free one by itself.
  const port = program === 'app' && variables.TILLGATE_PORT === '0' && { TILLGATE_PORT: String(await freePort()) };
  const app = [...flags, APP];
  const args = program === 'app' ? app : [COMMAND, 'dev', '--json', '--', process.execPath, ...app];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...withoutTillgate(process.env), ...variables, ...port },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, log] = [collect(child.stdout), collect(child.stderr)];
  const listening = new Promise<Report>((resolve, reject) => {
    child.stderr.on('data', () => {
      const url = /"url":"([^"]+)".*"the API listens"/.exec(log())?.[1];
      if (url !== undefined) resolve((program === 'app' ? { listening: url } : JSON.parse(stdout())) as Report);
    });
    child.once('error', reject);
    child.once('close', (code) => reject(new Error(`tillgate ${program} ended (exit ${code}). It wrote:\n${log()}`)));
  });
  return { report: await started(child, listening), stdout, log, stop: () => stop(child) };
}

function withoutTillgate(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('TILLGATE_')));
}
