import { newSigningKey, rotatedKeys } from './keys';
import type { AuthServerSettings } from './options';
import type { Store } from './store';

/** Clocks of resource servers may be behind by this much. */
const SKEW_MS = 60_000;

/** Makes what rotates the signing key; resolves with the name of the new one once it is on disk. */
export function keyRotation(store: Store, settings: AuthServerSettings): () => Promise<string> {
  const publishedForMs = settings.tokenLifetimeSeconds * 1000 + SKEW_MS;

  return async function rotateKeys() {
    const next = await newSigningKey(settings.signingAlgorithm);
    return store.change(({ keys }, { nowMs }) => ({
      keys: rotatedKeys(keys, next, nowMs + publishedForMs, nowMs),
      value: next.kid,
    }));
  };
}
