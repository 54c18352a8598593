import { called } from '../../core/callbacks';
import { withTimeLimit, type Clock, type Schedule } from '../../core/clock';
import { errorLabel, type Logger } from '../../core/logger';
import { attempt, isList } from '../../core/objects';
import { Outage } from '../../core/outage';
import { FetchError } from '../../net/http';
import { parseJsonObject } from '../../net/strict-json';
import type { FetchedKeys, KeyFetcher } from './fetch-keys';

/** Keeps the last good key set of each issuer over restarts of the process. Who can write to it can forge tokens. */
export interface KeyStore {
  /** Resolves with the record of an issuer that was saved last; with `undefined` if there is none. */
  readonly load: (issuer: string) => Promise<string | undefined>;
  /** Keeps a record in place of the one before. */
  readonly save: (issuer: string, record: string) => Promise<void>;
}

/** The key set of one issuer in a store. Neither function rejects: what fails is logged. */
export interface KeptKeys {
  /** The set that an earlier process kept; `undefined` where none is kept, or it is not one of this issuer. */
  readonly load: () => Promise<(FetchedKeys & { readonly fetchedAtMs: number }) | undefined>;
  readonly keep: (jwks: readonly unknown[], fetchedAtMs: number) => void;
}

/** Version of the records: a process refuses those of a later one. */
const FORMAT = 1;
/** A store that does not respond must not hold up the start for long. */
const STORE_TIMEOUT_MS = 2_000;

/** Whose key set a record has. Another URL is another key set. */
interface RecordOwner {
  readonly issuer: string;
  readonly jwksUri: string | undefined;
}

/** Keeps the key set of one issuer in a store. */
export function keptKeys(
  store: KeyStore,
  fetcher: KeyFetcher,
  { issuer, jwksUri }: RecordOwner,
  { clock, schedule, logger }: { readonly clock: Clock; readonly schedule: Schedule; readonly logger: Logger },
): KeptKeys {
  const outage = new Outage({ firstMs: 0, longestMs: 0 }, clock);
  const limited = <Value>(work: () => Promise<Value>): Promise<Value> =>
    withTimeLimit(called(work), STORE_TIMEOUT_MS, schedule, (limitMs) => new Error(`no response in ${limitMs} ms`));

  return {
    async load() {
      try {
        const text = await limited(() => store.load(issuer));
        if (text === undefined) return undefined;
        const { jwks, fetchedAtMs } = readRecord(text, { issuer, jwksUri });
        return { ...(await fetcher.read(jwks)), fetchedAtMs };
      } catch (error) {
        const isOwn = error instanceof KeyStoreError || error instanceof FetchError;
        const detail = isOwn ? error.message : errorLabel(error);
        logger.warn({ issuer, detail }, 'the kept key set is not used');
        return undefined;
      }
    },
    keep(jwks, fetchedAtMs) {
      const record = JSON.stringify({ format: FORMAT, issuer, jwksUri, fetchedAtMs, keys: jwks });
      limited(() => store.save(issuer, record)).then(
        () => outage.end((fields) => logger.info({ issuer, ...fields }, 'the key set is kept again')),
        (error: unknown) =>
          outage.fail(errorLabel(error), (fields) => logger.warn({ issuer, ...fields }, 'the key set cannot be kept')),
      );
    },
  };
}

/** Why a record is not used. */
class KeyStoreError extends Error {}

function readRecord(text: string, of: RecordOwner) {
  const record = attempt(() => parseJsonObject(Buffer.from(text)));
  if (!record) throw new KeyStoreError('the record is not a JSON object: it is broken');
  const { format, issuer, jwksUri, fetchedAtMs, keys } = record;
  if (format !== FORMAT) throw new KeyStoreError(`the record has format ${String(format)}, expected ${FORMAT}`);
  if (issuer !== of.issuer) throw new KeyStoreError('the record is of another issuer');
  if (jwksUri !== of.jwksUri) throw new KeyStoreError('the record is from another jwksUri');
  if (!Number.isSafeInteger(fetchedAtMs) || !isList(keys)) throw new KeyStoreError('the record is broken');
  return { jwks: keys, fetchedAtMs: fetchedAtMs as number };
}
