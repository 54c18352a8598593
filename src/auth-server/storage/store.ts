import { join } from 'node:path';
import type { Clock } from '../../core/clock';
import type { Logger } from '../../core/logger';
import { describeDiskError, lockDirectory, prepareDataDirectory } from './data-directory';
import type { DirectoryLock } from './data-directory';
import { removeUnfinished } from './durable-file';
import type { WriteFile } from './durable-file';
import { nextNumber } from './state';
import type { ClientRow, KeyRing, State, Tombstone } from './state';
import { readState, serializeState } from './state-file';

/** When a change takes place. */
export interface ChangeContext {
  readonly nowMs: number;
  /** The revision that the state has after the change. */
  readonly revision: number;
}

/** What one change does to the state; without `put`, `tombstone` and `keys` nothing is written. */
export interface Change<Value> {
  readonly put?: ClientRow;
  /** Deletes the client and leaves this. */
  readonly tombstone?: Tombstone;
  readonly keys?: KeyRing;
  /** Returned once the change is on disk. */
  readonly value: Value;
}

/** Computes a change from the state before it. Throws to refuse; must not have other effects. */
export type Edit<Value> = (state: State, context: ChangeContext) => Change<Value>;

/** A change could not be put on disk, and has not taken place. */
export class StorageError extends Error {
  override readonly name = 'StorageError';
}

/** What a store is made of. */
export interface StoreOptions {
  readonly dataDir: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly write: WriteFile;
  /** Makes the keys of a new state. */
  readonly newKeys: () => Promise<KeyRing>;
}

interface Waiting {
  /** Applies the change to the draft; returns how to report it once it is on disk. */
  readonly prepare: (draft: Draft) => () => void;
  readonly reject: (error: unknown) => void;
}

type Draft = { -readonly [Key in keyof State]: State[Key] } & {
  readonly clients: Map<string, ClientRow>;
  readonly tombstones: Map<string, Tombstone>;
};

const FILE = 'state.json';

/**
 * The state of the token server, in memory and in one file. A change is visible, and reported, only once it is on disk;
 * changes that arrive while one is being written go to disk together with the next write.
 */
export class Store {
  #state: State;
  #waiting: Waiting[] = [];
  #draining: Promise<void> | undefined;
  #closed = false;
  /** Latest time that a reader was told: no later change may lie before it. */
  #toldMs = 0;
  /** Revision of the first change that is being written; readers may not be told a later time. */
  #writingFrom: number | undefined;
  readonly #listeners = new Set<() => void>();
  readonly #options: StoreOptions;
  readonly #path: string;
  readonly #lock: DirectoryLock;

  /**
   * Opens the state in a directory, or begins one.
   *
   * @throws Error when the directory is in use, cannot be written or is not private, or its state cannot be read; an
   * existing state is never overwritten.
   */
  static async open(options: StoreOptions): Promise<Store> {
    const { dataDir } = options;
    let lock: DirectoryLock | undefined;
    try {
      await prepareDataDirectory(dataDir);
      lock = await lockDirectory(dataDir);
      await removeUnfinished(dataDir, FILE);
      const path = join(dataDir, FILE);
      const state = (await readState(path)) ?? (await beginState(path, options));
      return new Store(options, path, lock, state);
    } catch (error) {
      await lock?.release();
      throw describeDiskError(dataDir, error);
    }
  }

  private constructor(options: StoreOptions, path: string, lock: DirectoryLock, state: State) {
    this.#options = options;
    this.#path = path;
    this.#lock = lock;
    this.#state = state;
  }

  get state(): State {
    return this.#state;
  }

  /** A time in ms for readers: every change that they have not seen yet gets this revision or a later one. */
  nowMs(): number {
    const nowMs = this.#writingFrom ?? Math.max(this.#toldMs, this.#state.revision, this.#options.clock());
    return (this.#toldMs = nowMs);
  }

  /**
   * Changes the state; resolves once the change is on disk and visible.
   *
   * @throws any error of `edit`
   * @throws StorageError when the change could not be written; the state is then as before.
   */
  change<Value>(edit: Edit<Value>): Promise<Value> {
    if (this.#closed) return Promise.reject(new StorageError('the token server is closed'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        prepare: (draft) => {
          const value = this.#apply(draft, edit);
          return () => resolve(value);
        },
        reject,
      });
      this.#draining ??= this.#drain();
    });
  }

  /** Calls `listener` after every change that was put on disk, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Finishes the pending changes and releases the directory. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#draining;
    await this.#lock.release();
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#commit(this.#waiting.splice(0));
      this.#writingFrom = undefined;
    }
    this.#draining = undefined;
  }

  async #commit(batch: readonly Waiting[]): Promise<void> {
    const { revision, clients, tombstones, keys } = this.#state;
    const draft: Draft = { revision, clients: new Map(clients), tombstones: new Map(tombstones), keys };
    const reports = batch.map(({ prepare, reject }) => {
      try {
        return prepare(draft);
      } catch (error) {
        return () => reject(error);
      }
    });
    if (draft.revision !== revision) {
      try {
        await this.#options.write(this.#path, serializeState(draft));
      } catch (cause) {
        this.#options.logger.error({ path: this.#path, error: String(cause) }, 'the state could not be written');
        // Reject the refused edits too: a refusal may rest on a change of the same batch that has not taken place.
        const failed = new StorageError(`${this.#path} could not be written`, { cause });
        return batch.forEach(({ reject }) => reject(failed));
      }
      this.#state = draft;
      for (const listener of this.#listeners) listener();
    }
    for (const report of reports) report();
  }

  #apply<Value>(draft: Draft, edit: Edit<Value>): Value {
    const nowMs = this.#options.clock();
    const revision = nextNumber(draft.revision, Math.max(nowMs, this.#toldMs));
    const { put, tombstone, keys, value } = edit(draft, { nowMs, revision });
    if (put) {
      draft.clients.set(put.clientId, put);
      draft.tombstones.delete(put.clientId);
    }
    if (tombstone) {
      draft.clients.delete(tombstone.clientId);
      draft.tombstones.set(tombstone.clientId, tombstone);
    }
    if (keys) draft.keys = keys;
    if (put || tombstone || keys) {
      draft.revision = revision;
      this.#writingFrom ??= revision;
    }
    return value;
  }
}

/** Makes the state of a new token server and puts it on disk. */
async function beginState(path: string, { clock, write, newKeys }: StoreOptions): Promise<State> {
  const state = { revision: clock(), clients: new Map(), tombstones: new Map(), keys: await newKeys() };
  await write(path, serializeState(state));
  return state;
}
