import type { Caller } from '../token/fair-queue';
import type { Auth } from './options';

/** Verifies the tokens of one kind. */
export interface Verifier {
  /**
   * Returns the caller of a token that was verified before, after checking again what changes: its key, its times, its
   * generation. `undefined`: verify it.
   *
   * @throws AuthError when the token is no longer accepted
   */
  known(token: string): Auth | undefined;
  /**
   * Verifies a token. Throws, or rejects with, the AuthError of the first check that fails.
   *
   * @param caller - takes turns with others where introspection or signatures have to wait
   */
  verify(token: string, caller?: Caller): Promise<Auth>;
}
