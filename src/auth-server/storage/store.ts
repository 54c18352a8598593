import { join } from 'node:path';
import { RequestError } from '../errors';
import type { AuthServerSettings } from '../options';
import { describeDiskError, lockDirectory, prepareDataDirectory } from './data-directory';
import { removeUnfinished } from './durable-file';
import type { WriteFile } from './durable-file';
import type { ClientRow, KeyRing, State } from './state';
import { readState, serializeState } from './state-file';

/** What one change does to the state. Without keys and with the rows as they were, nothing is written. */
export interface Change<Value> {
  readonly put?: readonly ClientRow[];
  readonly keys?: KeyRing;
  /** Returned once the change is on disk. */
  readonly value: Value;
}

/** Computes a change from the state before it, at a time in ms. Throws to refuse; must not have other effects. */
export type Edit<Value> = (state: State, nowMs: number) => Change<Value>;

export interface StoreOptions extends Pick<AuthServerSettings, 'dataDir' | 'clock' | 'logger'> {
  readonly write: WriteFile;
  /** Makes the keys of a new state. */
  readonly newKeys: () => Promise<KeyRing>;
}

interface Waiting {
  readonly edit: Edit<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Draft extends State {
  /** Whether it differs from the state before. */
  changed: boolean;
  keys: KeyRing;
  readonly clients: Map<string, ClientRow>;
}

/**
 * The state of the token server, in memory and in one file. A change is visible, and reported, only once it is on disk;
 * changes that arrive while one is being written go to disk together with the next write.
 */
export class Store {
  #state: State;
  #waiting: Waiting[] = [];
  #draining: Promise<void> | undefined;
  #closed = false;
  readonly #options: StoreOptions;
  readonly #path: string;
  readonly #release: () => Promise<void>;

  /**
   * Opens the state in a directory, or begins one.
   *
   * @throws Error when the directory is in use or not private, or the state, which is then left as it is, cannot be read.
   */
  static async open(options: StoreOptions): Promise<Store> {
    const { dataDir } = options;
    const path = join(dataDir, 'state.json');
    let release: (() => Promise<void>) | undefined;
    try {
      await prepareDataDirectory(dataDir);
      release = await lockDirectory(dataDir);
      await removeUnfinished(path);
      const state = (await readState(path)) ?? (await beginState(path, options));
      return new Store(options, path, release, state);
    } catch (error) {
      await release?.();
      throw describeDiskError(dataDir, error);
    }
  }

  private constructor(options: StoreOptions, path: string, release: () => Promise<void>, state: State) {
    this.#options = options;
    this.#path = path;
    this.#release = release;
    this.#state = state;
  }

  get state(): State {
    return this.#state;
  }

  /**
   * Changes the state; resolves once the change is on disk and visible.
   *
   * @throws any error of `edit`
   * @throws RequestError 503 when the change could not be written; the state is then as before.
   */
  change<Value>(edit: Edit<Value>): Promise<Value> {
    if (this.#closed) return Promise.reject(storageUnavailable('the token server is closed'));
    return new Promise<Value>((resolve, reject) => {
      this.#waiting.push({ edit, resolve: resolve as (value: unknown) => void, reject });
      this.#draining ??= this.#drain();
    });
  }

  /** Finishes the pending changes and releases the directory. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#draining;
    await this.#release();
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) await this.#commit(this.#waiting.splice(0));
    this.#draining = undefined;
  }

  async #commit(batch: readonly Waiting[]): Promise<void> {
    const { keys, clients } = this.#state;
    const draft: Draft = { changed: false, keys, clients: new Map(clients) };
    const reports = batch.map(({ edit, resolve, reject }) => {
      try {
        const value = this.#apply(draft, edit);
        return () => resolve(value);
      } catch (error) {
        return () => reject(error);
      }
    });
    if (draft.changed) {
      try {
        await this.#options.write(this.#path, serializeState(draft));
      } catch (error) {
        this.#options.logger.error({ path: this.#path, error: String(error) }, 'the state could not be written');
        // Reject the refused edits too: a refusal may rest on a change of the same batch that has not taken place.
        return batch.forEach(({ reject }) => reject(storageUnavailable(NOT_WRITTEN)));
      }
      this.#state = { keys: draft.keys, clients: draft.clients };
    }
    for (const report of reports) report();
  }

  #apply<Value>(draft: Draft, edit: Edit<Value>): Value {
    const { put = [], keys, value } = edit(draft, this.#options.clock());
    for (const row of put) {
      if (row === draft.clients.get(row.clientId)) continue;
      draft.clients.set(row.clientId, row);
      draft.changed = true;
    }
    if (keys) Object.assign(draft, { keys, changed: true });
    return value;
  }
}

/** Makes the state of a new token server and puts it on disk. */
async function beginState(path: string, { write, newKeys }: StoreOptions): Promise<State> {
  const state = { clients: new Map(), keys: await newKeys() };
  await write(path, serializeState(state));
  return state;
}

const NOT_WRITTEN =
  'The change could not be written to disk and has not taken place: try again once the disk of the token server has room.';

/** The cause is in the log only: it names paths of this machine. */
function storageUnavailable(message: string): RequestError {
  return new RequestError(503, 'storage_unavailable', message, { 'Retry-After': '5' });
}
