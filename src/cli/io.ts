import type { Environment } from '../settings/read-variables';

/** A stream as the command line uses it. */
export interface Sink {
  write(text: string): unknown;
}

/** All that the command line touches of its process; tests bring their own. */
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

/** The surroundings of the real process. */
export function processIo(): CliIo {
  return {
    env: process.env,
    stdout: process.stdout,
    stderr: process.stderr,
    fetch: (input, init) => fetch(input, init),
    readStdin,
    untilStopped,
    // Inside this repository the command is no installed binary: npm runs it from the sources.
    programName: process.env['npm_lifecycle_event'] ? 'npm run -s tillgate --' : 'npx tillgate',
  };
}

async function readStdin(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) text += String(chunk);
  return text;
}

/** The first SIGTERM or SIGINT asks to stop; a second one ends the process at once, with the signal's exit code. */
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
