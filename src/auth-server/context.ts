import type { Generations } from './generations';
import type { RateLimits } from './guards';
import type { AuthServerSettings } from './options';
import type { Store } from './store';

/** What the endpoints of one token server work on. */
export interface Context {
  readonly settings: AuthServerSettings;
  readonly store: Store;
  readonly generations: Generations;
  readonly limits: RateLimits;
  /** The scopes of the last token of each client since the start. */
  readonly lastGranted: Map<string, readonly string[]>;
}
