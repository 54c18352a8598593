import { execFile } from 'node:child_process';

/** How a command ended. */
export interface Ended {
  readonly exitCode: number;
  /** What it wrote to stdout. */
  readonly output: string;
  /** What it wrote to stderr. */
  readonly errors: string;
}

/** Runs npm in a folder, as outside of tests and of `npm run`. Never rejects. */
export function npm(folder: string, ...args: readonly string[]): Promise<Ended> {
  return execute(folder, 'npm', args);
}

/** Runs Node in a folder, likewise. */
export function node(folder: string, ...args: readonly string[]): Promise<Ended> {
  return execute(folder, process.execPath, args);
}

/** A test runner that never ends fails its own test, not all of them. */
const LIMIT_MS = 1_200_000;

/** Runs a program in a folder, likewise. */
export function execute(cwd: string, command: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(
      command,
      args,
      { cwd, env: environment(), maxBuffer: 2 ** 24, timeout: LIMIT_MS },
      (error, output, errors) => {
        const exitCode = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
        resolve({ exitCode, output, errors: exitCode === 0 ? errors : `${errors}${error?.message ?? ''}` });
      },
    );
  });
}

/** What Jest, npm and the gate put there for themselves would change how the command behaves. */
function environment(): NodeJS.ProcessEnv {
  const ours =
    /^(NODE_ENV|NODE_OPTIONS|JEST_WORKER_ID|TS_JEST|INIT_CWD|npm_(package|lifecycle)_.*|npm_config_local_prefix|TILLGATE_.*)$/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}
