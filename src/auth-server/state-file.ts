import { readFile } from 'node:fs/promises';
import type { Clock } from '../core/clock';
import type { WriteFile } from './durable-file';
import type { KeyRing, State } from './state';
import { parseState, serializeState } from './state-document';

/** What a first state is made with. */
export interface BeginOptions {
  readonly clock: Clock;
  readonly write: WriteFile;
  readonly newKeys: () => Promise<KeyRing>;
}

/**
 * Reads the state on disk; `undefined` when there is none.
 *
 * @throws Error that names the file, when there is something that cannot be used.
 */
export async function readState(path: string): Promise<State | undefined> {
  try {
    return parseState(await readFile(path, 'utf8'));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    const reason = (cause as Error).message;
    throw new Error(
      `the state of the token server in ${path} cannot be used: ${reason}; restore it, or delete it to begin anew`,
      { cause },
    );
  }
}

/** Makes the state of a new token server and puts it on disk. */
export async function beginState(path: string, { clock, write, newKeys }: BeginOptions): Promise<State> {
  const state = { revision: clock(), clients: new Map(), tombstones: new Map(), keys: await newKeys() };
  await write(path, serializeState(state));
  return state;
}
