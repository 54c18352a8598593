import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';

/** Keeps what a stream says, for the message of a failure. */
export function collect(stream: Readable | null): () => string {
  let text = '';
  stream?.setEncoding('utf8').on('data', (chunk: string) => void (text += chunk));
  return () => text;
}

/** Asks a process that we started to end, and waits until it has. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGTERM');
  await closed;
}

/** Longest that a process of ours may take from its start to its first word. */
const START_TIMEOUT_MS = 120_000;

/** Waits for the first word of a process; one that stays silent is ended, and what waits for it then fails. */
export async function started<Word>(child: ChildProcess, firstWord: Promise<Word>): Promise<Word> {
  const deadline = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS);
  try {
    return await firstWord;
  } finally {
    clearTimeout(deadline);
  }
}
