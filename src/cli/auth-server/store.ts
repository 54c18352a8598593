import type { JsonWebKey } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type jwt from 'jsonwebtoken';
import { attempt, isObject } from 'tillgate/internal';
import { describeDiskError, prepareDataDirectory, writeDurably } from './data-directory';
import { RequestError } from './errors';
import type { AuthServerSettings } from './options';

/** A client credential. Rows are immutable: every change makes a new one. */
export interface ClientRow {
  readonly clientId: string;
  readonly description: string;
  readonly scopes: readonly string[];
  readonly disabled: boolean;
  /** A deleted client keeps its row, disabled and empty, so that its id never gets an old generation again. */
  readonly deleted: boolean;
  /** Tokens that carry a lower number are discarded. Not before the time of its last change, in ms. */
  readonly generation: number;
  /** Newest first. `hash` is SHA-256 in hexadecimal: the text was shown once and is not kept. */
  readonly secrets: readonly { readonly id: string; readonly hash: string; readonly createdMs: number }[];
  readonly createdMs: number;
  readonly updatedMs: number;
}

/** A key that signs, or has signed. */
export interface StoredKey {
  readonly kid: string;
  readonly alg: jwt.Algorithm;
  /** Without private members once the key is retired. */
  readonly jwk: JsonWebKey;
  /** When the last token of a retired key has expired. */
  readonly publishedUntilMs: number;
}

/** Everything that the token server keeps. Immutable: every change makes a new one. */
export interface State {
  /** By client id, deleted ones too. */
  readonly clients: ReadonlyMap<string, ClientRow>;
  readonly keys: { readonly signing: StoredKey; readonly retired: readonly StoredKey[] };
}

/** A state, and the text of its file. */
interface Kept {
  readonly state: State;
  readonly text: string;
}

interface StoreOptions extends Pick<AuthServerSettings, 'dataDir' | 'clock' | 'logger'> {
  /** Makes the keys of a new state. */
  readonly newKeys: () => Promise<State['keys']>;
  readonly write?: typeof writeDurably;
  /** Gets what this process says when it stops because another one has changed the file. */
  readonly onStop?: (reason: Error) => void;
}

/** The state of the token server, in memory and in one file. A change is visible, and reported, only once it is on disk. */
export class Store {
  /** The state, and the text of the file, as this process has read or written it last. */
  #kept: Kept;
  #stopped = false;
  /** Changes are applied one after the other. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;
  readonly #options: Required<StoreOptions>;
  readonly #path: string;

  /**
   * Opens the state in a directory, or begins one.
   *
   * @throws Error when the directory is not private, or the state, which is then left as it is, cannot be read.
   */
  static async open(given: StoreOptions): Promise<Store> {
    const options = { write: writeDurably, onStop: () => undefined, ...given };
    const { dataDir, write, newKeys } = options;
    const path = join(dataDir, 'state.json');
    try {
      await prepareDataDirectory(dataDir);
      for (const name of await readdir(dataDir)) {
        // Of a process that was killed while it wrote.
        if (name.startsWith('state.json.') && name.endsWith('.tmp')) await rm(join(dataDir, name));
      }
      const kept = await readState(path);
      if (kept) return new Store(options, path, kept);
      const state = { clients: new Map(), keys: await newKeys() };
      const text = serializeState(state);
      await write(path, text);
      return new Store(options, path, { state, text });
    } catch (error) {
      throw describeDiskError(dataDir, error);
    }
  }

  private constructor(options: Required<StoreOptions>, path: string, kept: Kept) {
    this.#options = options;
    this.#path = path;
    this.#kept = kept;
  }

  get state(): State {
    return this.#kept.state;
  }

  /** Whether another process has changed the file: the state here may lack what that one has acknowledged. */
  get isStopped(): boolean {
    return this.#stopped;
  }

  /** @throws RequestError 503 once another process has changed the file. */
  requireOwn(): void {
    if (this.#stopped) throw storageUnavailable(STOPPED);
  }

  /**
   * Changes the state; resolves once the change is on disk and visible.
   *
   * @param edit - computes the change from the state before it, at a time in ms; throws to refuse, has no other effect.
   * Without keys and with the row as it was, nothing is written.
   * @throws any error of `edit`
   * @throws RequestError 503 when the change could not be written; the state is then as before.
   */
  async change<Value>(
    edit: (
      state: State,
      nowMs: number,
    ) => { readonly put?: ClientRow; readonly keys?: State['keys']; readonly value: Value },
  ): Promise<Value> {
    if (this.#closed) throw storageUnavailable('the token server is closed');
    const changed = this.#last.catch(() => undefined).then(() => this.#apply(edit));
    this.#last = changed;
    return changed;
  }

  /** Finishes the pending changes. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#last.catch(() => undefined);
  }

  async #apply<Value>(edit: Parameters<typeof this.change<Value>>[0]): Promise<Value> {
    const { write, logger, clock } = this.#options;
    this.requireOwn();
    const { put, keys, value } = edit(this.state, clock());
    const isSame = !put || put === this.state.clients.get(put.clientId);
    if (isSame && !keys) return value;
    const clients = new Map(this.state.clients);
    if (put) clients.set(put.clientId, put);
    const next = { keys: keys ?? this.state.keys, clients };
    const text = serializeState(next);
    try {
      await write(this.#path, text, undefined, () => this.#requireText(this.#kept.text));
      // The other process may have read the file at the same moment: then the later write counts, and the earlier one fails.
      await this.#requireText(text);
    } catch (error) {
      this.requireOwn();
      logger.error({ path: this.#path, error: String(error) }, 'the state could not be written');
      throw storageUnavailable(NOT_WRITTEN);
    }
    this.#kept = { state: next, text };
    return value;
  }

  /** A second token server on this directory would undo what the first one has acknowledged: the one that notices stops. */
  async #requireText(expected: string): Promise<void> {
    const found = (await readText(this.#path)) ?? expected;
    if (found === expected) return;
    this.#stopped = true;
    const { logger, onStop } = this.#options;
    const reason = new Error(
      `another process has changed ${this.#path}: this token server stops, so that no change is undone; run one for each data directory`,
    );
    logger.error({ path: this.#path }, reason.message);
    onStop(reason);
    throw reason;
  }
}

const STOPPED =
  'Another process has changed the data of this token server, which has stopped: run one token server for each data directory.';

const NOT_WRITTEN =
  'The change could not be written to disk and has not taken place: try again once the disk of the token server has room.';

/** The cause is in the log only: it names paths of this machine. */
function storageUnavailable(message: string): RequestError {
  return new RequestError(503, 'storage_unavailable', message, { 'Retry-After': '5' });
}

/** Format of the file; a later one that older code cannot read gets the next number. */
const FORMAT = 2;

/** Reads the state in a file, if there is one; throws an Error that names the file when it cannot be used. */
export async function readState(path: string): Promise<Kept | undefined> {
  try {
    const text = await readText(path);
    return text === undefined ? undefined : { text, state: parseState(text) };
  } catch (cause) {
    throw new Error(
      `the state of the token server in ${path} cannot be used: ${(cause as Error).message}; restore it, or delete it to begin anew`,
      { cause },
    );
  }
}

async function readText(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
}

/** The text of the file. */
function serializeState({ keys, clients }: State): string {
  return `${JSON.stringify({ format: FORMAT, keys, clients: [...clients.values()] })}\n`;
}

/** Reads the text of a file; throws an Error that says what is wrong but never quotes the text: it holds the private key. */
function parseState(text: string): State {
  const document = attempt(() => JSON.parse(text) as unknown);
  if (!isObject(document)) throw new Error('it is not a JSON object');
  if (document['format'] !== FORMAT)
    throw new Error(`its "format" is not ${FORMAT}: another version has written it, use that one (UPGRADE.md)`);
  const { keys, clients } = document as unknown as { keys: State['keys']; clients: ClientRow[] };
  return { keys, clients: new Map(clients.map((row) => [row.clientId, row])) };
}
