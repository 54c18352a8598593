import type { Environment } from '../settings/settings';

/** A stream as the command line uses it. */
export interface Sink {
  write(text: string): unknown;
  /** Whether it is a terminal. */
  readonly isTTY?: boolean;
  /** Width of the terminal. */
  readonly columns?: number;
}

/** What the command line uses of its process; tests inject their own. */
export interface CliIo {
  readonly env: Environment;
  /** Results: text for people, or one JSON document. */
  readonly stdout: Sink;
  /** Errors and log lines. */
  readonly stderr: Sink;
  readonly fetch: typeof fetch;
  /** Everything on standard input. */
  readonly readStdin: () => Promise<string>;
  /** Resolves when the process is asked to stop. */
  readonly untilStopped: () => Promise<void>;
  /** How this program is called, for hints: `npx tillgate`. */
  readonly programName: string;
}

/** Those of the real process. */
export function processIo(): CliIo {
  return {
    env: process.env,
    stdout: process.stdout,
    stderr: process.stderr,
    fetch: (input, init) => fetch(input, init),
    readStdin,
    untilStopped,
    programName: programName(process.env),
  };
}

/** In a clone there is no installed command: `npm run` starts it from the sources. npx sets the same variables. */
export function programName(env: Environment): string {
  const isClone = env['npm_package_name'] === 'tillgate' && (env['npm_lifecycle_event'] ?? 'npx') !== 'npx';
  return isClone ? 'npm run -s tillgate --' : 'npx tillgate';
}

async function readStdin(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) text += String(chunk);
  return text;
}

/** The first SIGTERM or SIGINT asks to stop; a second one ends the process immediately, with the signal's exit code. */
function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    function onSignal(this: void, _signal: NodeJS.Signals, number: number): void {
      if (asked) process.exit(128 + number);
      asked = true;
      resolve();
    }
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}
