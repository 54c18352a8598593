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
 * one per 5 s; while none is allowed, the response is 429, because the id may be that of a new key.
 */
export function remoteKeys(options: RemoteKeysOptions): KeySource {
  const published = keyRefresh(options);
  const unknown = unknownKeys(options.clock);

  /** Waits for a fetch if one is due; returns the keys that may be used then. */
  async function usableKeys(): Promise<KeySet | undefined> {
    const due = !published.isBackingOff;
    // Once a refresh has failed, the last good keys serve immediately and the next attempt runs in the background.
    if (published.state() === 'stale' && published.isFailing) void (due && published.refresh());
    else if (published.inFlight || due) await published.refresh();
    const state = published.state();
    return state === 'fresh' || state === 'stale' ? published.keys : undefined;
  }

  async function findLater(header: UnverifiedHeader, checkToken: () => void): Promise<VerificationKey> {
    const startedBefore = published.started;
    const usable = await usableKeys();
    const found = usable?.find(header);
    if (found) return found;
    refuseUnusable(header);
    if (!usable) throw published.unavailable();
    checkToken();
    return findUnknown(header, startedBefore);
  }

  /**
   * Asks the issuer about an unknown id: it may be that of a key published a moment ago.
   *
   * @param startedBefore - fetches started before the token came: their key set does not prove that the id is unknown
   */
  async function findUnknown(header: UnverifiedHeader, startedBefore: number): Promise<VerificationKey> {
    const id = idOf(header);
    await published.inFlight;
    let found = findNow(header);
    if (!found && published.keysFetch <= startedBefore) {
      if (unknown.has(id)) throw new AuthError('unknown_key');
      if (published.isBackingOff) throw published.unavailable();
      // A fetch in flight here was started after the token came, on behalf of another one.
      if (!published.inFlight && !unknown.takeFetch()) {
        // The issuer has withdrawn the key: that is known without another fetch.
        if (published.previous?.find(header)) throw new AuthError('unknown_key');
        throw new AuthError('too_many_unknown_keys', { retryAfterSeconds: Math.ceil(unknown.waitMs() / 1000) });
      }
      await published.refresh();
      found = findNow(header);
    }
    if (found) return found;
    if (published.keysFetch <= startedBefore) throw published.unavailable();
    unknown.add(id);
    throw new AuthError('unknown_key');
  }

  /** Throws also where the last key set has a key of this id that must not be used. */
  function findNow(header: UnverifiedHeader): VerificationKey | undefined {
    const found = published.keys?.find(header);
    if (!found) refuseUnusable(header);
    return found;
  }

  function refuseUnusable({ keyId }: UnverifiedHeader): void {
    const why = keyId === undefined ? undefined : published.unusable(keyId);
    if (why !== undefined) throw new AuthError('unusable_key', { privateDetail: `the key is not used: ${why}` });
  }

  return {
    find(header, checkToken) {
      if (published.state() !== 'fresh') return findLater(header, checkToken);
      const key = findNow(header);
      if (key) return key;
      checkToken();
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
