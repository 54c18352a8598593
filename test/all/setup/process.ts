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
