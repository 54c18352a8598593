import { systemSchedule } from '../core/clock';
import type { Schedule, Timer } from '../core/clock';
import type { CliIo, Sink } from './command';

const EVERY_MS = 1_000;
/** Back to the start of the line, which is then empty. */
const CLEAR = '\r\x1b[K';

/** The io of a command that shows how long it takes. */
export interface ProgressIo {
  readonly io: CliIo;
  /** Takes the line away; the command is done. */
  readonly stop: () => void;
}

/**
 * Shows in a terminal what a command that takes more than a second waits for, in one line of stderr. The line is gone
 * before anything else is written, and stays away after the first result, or when input is read.
 *
 * @param command - its name: `tillgate check`
 */
export function withProgress(io: CliIo, command: string, schedule: Schedule = systemSchedule): ProgressIo {
  const { stdout, stderr } = io;
  if (!stderr.isTTY) return { io, stop() {} };
  const origins = new Set<string>();
  let seconds = 0;
  let isShown = false;
  let timer: Timer | undefined = schedule(show, EVERY_MS);

  function show(): void {
    seconds += EVERY_MS / 1_000;
    const [origin] = origins;
    const text = `${command}${origin === undefined ? '' : ` waits for ${origin}`}, ${seconds} s`;
    stderr.write(`${CLEAR}${text.slice(0, (stderr.columns ?? 80) - 1)}`);
    isShown = true;
    timer = schedule(show, EVERY_MS);
  }
  function clear(): void {
    if (isShown) stderr.write(CLEAR);
    isShown = false;
  }
  function stop(): void {
    timer?.cancel();
    timer = undefined;
    clear();
  }
  function before(sink: Sink, act: () => void): Sink {
    return {
      write(text) {
        act();
        return sink.write(text);
      },
      isTTY: sink.isTTY === true,
      get columns() {
        return sink.columns ?? 80;
      },
    };
  }
  return {
    stop,
    io: {
      ...io,
      stdout: before(stdout, stop),
      stderr: before(stderr, clear),
      // What is typed appears in the same terminal.
      readStdin() {
        stop();
        return io.readStdin();
      },
      async fetch(input, init) {
        const { origin } = new URL(input instanceof Request ? input.url : input);
        origins.add(origin);
        try {
          return await io.fetch(input, init);
        } finally {
          origins.delete(origin);
        }
      },
    },
  };
}
