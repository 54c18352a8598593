import { AuthError } from '../../core/auth-error';
import type { UnverifiedHeader } from '../jws';
import type { VerificationKey } from './jwk';
import { keyRefresh } from './key-refresh';
import type { KeyRefreshOptions } from './key-refresh';
import type { KeySet, KeySource } from './key-set';
import { unknownKeys } from './unknown-keys';

/** Options of the key set that an issuer publishes. */
export type RemoteKeysOptions = KeyRefreshOptions;

/**
 * Finds keys in the key set that an issuer publishes. A token whose key is cached does not wait. The first token with a
 * new key waits for one fetch, so a rotation refuses no request. Unknown key ids cost two fetches immediately and then
 * one per 5 s; while none is allowed, the response is 503, because the id may be that of a new key.
 */
export function remoteKeys(options: RemoteKeysOptions): KeySource {
  const published = keyRefresh(options);
  const unknown = unknownKeys(options.clock);

  /** Keys that may be used now, after a fetch if one is due. */
  async function usableKeys(): Promise<KeySet> {
    const due = !published.isBackingOff;
    // Once a refresh has failed, the last good keys serve immediately and the next attempt runs in the background.
    if (published.state() === 'stale' && published.isFailing) void (due && published.refresh());
    else if (published.inFlight || due) await published.refresh();
    const state = published.state();
    if (published.keys && (state === 'fresh' || state === 'stale')) return published.keys;
    throw published.unavailable();
  }

  async function findLater(header: UnverifiedHeader): Promise<VerificationKey> {
    const startedBefore = published.started;
    const usable = await usableKeys();
    return usable.find(header) ?? findUnknown(header, startedBefore);
  }

  /**
   * Asks the issuer about an unknown id: it may be that of a key published a moment ago.
   *
   * @param startedBefore - fetches started before the token came: their key set does not prove that the id is unknown
   */
  async function findUnknown(header: UnverifiedHeader, startedBefore: number): Promise<VerificationKey> {
    const id = idOf(header);
    await published.inFlight;
    let found = published.keys?.find(header);
    if (!found && published.keysFetch <= startedBefore) {
      if (unknown.has(id)) throw new AuthError('unknown_key');
      if (published.isBackingOff) throw published.unavailable();
      // A fetch in flight here was started after the token came, on behalf of another one.
      if (!published.inFlight && !unknown.takeFetch()) {
        // The issuer has withdrawn the key: that is known without another fetch.
        throw published.previous?.find(header) ? new AuthError('unknown_key') : published.unavailable(unknown.waitMs());
      }
      await published.refresh();
      found = published.keys?.find(header);
    }
    if (found) return found;
    if (published.keysFetch <= startedBefore) throw published.unavailable();
    unknown.add(id);
    throw new AuthError('unknown_key');
  }

  return {
    find(header) {
      if (published.state() !== 'fresh') return findLater(header);
      const key = published.keys?.find(header);
      if (key) return key;
      if (unknown.has(idOf(header))) throw new AuthError('unknown_key');
      return findUnknown(header, published.started);
    },
    has(key) {
      const state = published.state();
      // Too old and no refresh has been tried, as after a pause of the process: the key may have been removed.
      if (state === 'stale' && !published.isFailing) return false;
      return (state === 'fresh' || state === 'stale') && published.keys?.has(key) === true;
    },
    ready: () => published.ready(),
    status: () => published.status(),
    close: () => published.close(),
  };
}

function idOf({ keyId }: UnverifiedHeader): string {
  return keyId ?? '';
}
