import { hash, randomUUID } from 'node:crypto';
import { promises as fs } from 'node:fs';
import { join } from 'node:path';
import { withTimeLimit } from '../../core/clock';
import type { Clock, Schedule } from '../../core/clock';
import { errorLabel } from '../../core/logger';
import type { Logger } from '../../core/logger';
import { attempt } from '../../core/objects';
import { isList, option } from '../../core/options';
import { Outage } from '../../core/outage';
import { FetchError } from '../http';
import { parseJsonObject } from '../strict-json';
import type { FetchedKeys, KeyFetcher } from './fetch-keys';

/** Keeps the last good key set of each issuer over restarts of the process. */
export interface KeyStore {
  /** The record of an issuer; `undefined`: none is kept. */
  read(issuer: string): Promise<string | undefined>;
  /**
   * Keeps a record. One whose `fetchedAtMs` is later, by a day at most, must stay: processes that share a store may write
   * in any order, and the earlier set may hold a key that was removed since. One that is still later is the mistake of a clock.
   */
  write(issuer: string, record: string, fetchedAtMs: number): Promise<void>;
}

/** The key set of one issuer in a store. Neither function rejects: what fails is logged. */
export interface KeptKeys {
  /** The set that an earlier process kept; `undefined` where none is kept, or it is not one of this issuer. */
  load(): Promise<(FetchedKeys & { readonly fetchedAtMs: number }) | undefined>;
  keep(jwks: readonly unknown[], fetchedAtMs: number): void;
}

export const KEY_STORE = option('a directory, a key store with read() and write(), or false', (given) => {
  if (given === false) return false;
  if (typeof given === 'string') return given === '' ? undefined : directoryKeyStore(given);
  const { read, write } = (given ?? {}) as Partial<KeyStore>;
  return typeof read === 'function' && typeof write === 'function' ? (given as KeyStore) : undefined;
});

/** Version of the records: a process refuses those of a later one. */
const FORMAT = 1;
/** A store that does not respond must not hold up the start for long. */
const TIMEOUT_MS = 2_000;

/** Keeps the key set of one issuer in a store. */
export function keptKeys({
  store,
  readKeys,
  issuer,
  jwksUri,
  clock,
  schedule,
  logger,
}: {
  readonly store: KeyStore;
  readonly readKeys: KeyFetcher['read'];
  readonly issuer: string;
  /** Part of the record: another URL is another key set. */
  readonly jwksUri?: string | undefined;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly logger: Logger;
}): KeptKeys {
  const outage = new Outage({ firstMs: 0, longestMs: 0 }, clock);
  const limited = <Value>(work: () => Promise<Value>): Promise<Value> =>
    withTimeLimit((async () => work())(), TIMEOUT_MS, schedule, (limitMs) => new Error(`no response in ${limitMs} ms`));

  return {
    async load() {
      try {
        const text = await limited(() => store.read(issuer));
        if (text === undefined) return undefined;
        const { jwks, fetchedAtMs } = readRecord(text, { issuer, jwksUri });
        return { ...(await readKeys(jwks)), fetchedAtMs };
      } catch (error) {
        const isOwn = error instanceof KeyStoreError || error instanceof FetchError;
        const detail = isOwn ? error.message : errorLabel(error);
        logger.warn({ issuer, detail }, 'the kept key set is not used');
        return undefined;
      }
    },
    keep(jwks, fetchedAtMs) {
      const record = JSON.stringify({ format: FORMAT, issuer, jwksUri, fetchedAtMs, keys: jwks });
      limited(() => store.write(issuer, record, fetchedAtMs)).then(
        () => outage.end((fields) => logger.info({ issuer, ...fields }, 'the key set is kept again')),
        (error: unknown) =>
          outage.fail(errorLabel(error), (fields) => logger.warn({ issuer, ...fields }, 'the key set cannot be kept')),
      );
    },
  };
}

/** Why a record is not used. */
class KeyStoreError extends Error {}

function readRecord(text: string, of: { readonly issuer: string; readonly jwksUri: string | undefined }) {
  const record = attempt(() => parseJsonObject(Buffer.from(text)));
  if (!record) throw new KeyStoreError('the record is not a JSON object: it is broken');
  const { format, issuer, jwksUri, fetchedAtMs, keys } = record;
  if (format !== FORMAT) throw new KeyStoreError(`the record has format ${String(format)}, expected ${FORMAT}`);
  if (issuer !== of.issuer) throw new KeyStoreError('the record is of another issuer');
  if (jwksUri !== of.jwksUri) throw new KeyStoreError('the record is from another jwksUri');
  if (!Number.isSafeInteger(fetchedAtMs) || !isList(keys)) throw new KeyStoreError('the record is broken');
  return { jwks: keys, fetchedAtMs: fetchedAtMs as number };
}

/** A record that is later than another by more than this was written by a process whose clock was wrong. */
export const DAY_MS = 86_400_000;

/** Bits of a mode with which others than the owner may write. */
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Keeps each record in a file of its own whose name holds its time: the latest is read, and none can replace a later one.
 * A file that another user could have written is refused, because its keys would be trusted.
 */
function directoryKeyStore(directory: string): KeyStore {
  const filesOf = async (issuer: string): Promise<readonly { readonly path: string; readonly atMs: number }[]> => {
    const pattern = new RegExp(`^${nameOf(issuer)}\\.(\\d{1,16})\\.json$`);
    const names = await fs.readdir(directory).catch(noneIfMissing);
    const found = names.flatMap((name) => {
      const atMs = pattern.exec(name)?.[1];
      return atMs === undefined ? [] : [{ path: join(directory, name), atMs: Number(atMs) }];
    });
    return found.sort((one, other) => other.atMs - one.atMs);
  };

  return {
    async read(issuer) {
      const [latest] = await filesOf(issuer);
      if (!latest) return undefined;
      for (const path of [directory, latest.path]) {
        const { uid, mode } = await fs.stat(path);
        const isForeign =
          process.getuid !== undefined && (uid !== process.getuid() || (mode & WRITABLE_BY_OTHERS) !== 0);
        if (isForeign) throw new KeyStoreError(`${path} can be written by another user: chown it to yours, chmod go-w`);
      }
      return fs.readFile(latest.path, 'utf8');
    },
    async write(issuer, record, fetchedAtMs) {
      await fs.mkdir(directory, { recursive: true, mode: 0o700 });
      const path = join(directory, `${nameOf(issuer)}.${fetchedAtMs}.json`);
      const temporary = `${path}.${randomUUID()}`;
      try {
        await fs.writeFile(temporary, record, { mode: 0o600, flush: true });
        await fs.rename(temporary, path);
      } finally {
        await fs.rm(temporary, { force: true });
      }
      const files = (await filesOf(issuer)).filter(({ atMs }) => atMs <= fetchedAtMs + DAY_MS);
      const others = (await filesOf(issuer)).filter(({ path: other }) => other !== files[0]?.path);
      await Promise.all(others.map((file) => fs.rm(file.path, { force: true })));
    },
  };
}

/** A file name cannot hold every URL. */
function nameOf(issuer: string): string {
  return `keys-${hash('sha256', issuer).slice(0, 16)}`;
}

function noneIfMissing(error: NodeJS.ErrnoException): string[] {
  if (error.code === 'ENOENT') return [];
  throw error;
}
