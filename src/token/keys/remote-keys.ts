import { AuthError } from '../../core/auth-error';
import type { UnverifiedHeader } from '../jws';
import type { VerificationKey } from './jwk';
import { keyRefresh } from './key-refresh';
import type { KeyRefreshOptions } from './key-refresh';
import type { KeySet, KeySource } from './key-source';
import { unknownKeys } from './unknown-keys';

/** What the published keys of an issuer need. */
export type RemoteKeysOptions = KeyRefreshOptions;

/**
 * Finds keys in the key set that an issuer publishes. A token whose key is at hand never waits; the first one with a new
 * key waits for one fetch, so that a rotation costs nobody a request; made-up key ids cost two fetches per 30 s.
 */
export function remoteKeys(options: RemoteKeysOptions): KeySource {
  const published = keyRefresh(options);
  const unknown = unknownKeys(options.clock);

  /** Keys that may be used now, after a fetch where one is due. */
  async function usableKeys(): Promise<KeySet> {
    const due = !published.heldBack;
    // Once a refresh has failed, the last good keys serve at once and the next attempt runs in the background.
    if (published.state() === 'stale' && published.failing) void (due && published.refresh());
    else if (published.inFlight || due) await published.refresh();
    const state = published.state();
    if (published.keys && (state === 'fresh' || state === 'stale')) return published.keys;
    throw published.unavailable();
  }

  async function findLater(header: UnverifiedHeader): Promise<VerificationKey> {
    const begunBefore = published.begun;
    const usable = await usableKeys();
    return usable.find(header) ?? findUnknown(header, begunBefore);
  }

  /**
   * RFC 7517 leaves rotation to the issuer: an unknown id may be a key that is seconds old, so ask once more.
   *
   * @param begunBefore - fetches that had begun when the token came: what they bring does not prove that the key is unknown
   */
  async function findUnknown(header: UnverifiedHeader, begunBefore: number): Promise<VerificationKey> {
    await published.inFlight;
    const found = published.keys?.find(header) ?? (await findAfterFetch(header, begunBefore));
    if (found) return found;
    if (published.answered > begunBefore) unknown.add(idOf(header));
    throw new AuthError('unknown_key');
  }

  async function findAfterFetch(header: UnverifiedHeader, begunBefore: number): Promise<VerificationKey | undefined> {
    if (published.answered > begunBefore || unknown.has(idOf(header))) return undefined;
    if (published.heldBack) throw published.unavailable();
    // Whoever joins a fetch under way here came before it began, and costs nothing.
    if (!published.inFlight && !unknown.takeFetch()) return undefined;
    await published.refresh();
    const found = published.keys?.find(header);
    // An issuer that does not answer says nothing about the key: that is an outage, not a bad token.
    if (!found && published.answered <= begunBefore) throw published.unavailable();
    return found;
  }

  return {
    find(header) {
      if (published.state() !== 'fresh') return findLater(header);
      const key = published.keys?.find(header);
      if (key) return key;
      if (unknown.has(idOf(header))) throw new AuthError('unknown_key');
      return findUnknown(header, published.begun);
    },
    has(key) {
      const state = published.state();
      // Too old, and nobody has tried yet, as after a pause of the whole process: the key may be gone, so it is looked up.
      if (state === 'stale' && !published.failing) return false;
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
