import type { Publisher } from './generations/publisher';
import type { Tokens } from './oauth/tokens';
import type { AuthServerSettings } from './options';
import type { Store } from './storage/store';

/** What the endpoints of one token server work on. */
export interface Context {
  readonly settings: AuthServerSettings;
  readonly store: Store;
  readonly publisher: Publisher;
  readonly tokens: Tokens;
}
