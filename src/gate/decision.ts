import type { AuthError } from '../core/auth-error';
import type { Reason } from '../core/reasons';

/** The authenticated client, from its verified access token. Frozen; shared by all requests with the same token. */
export interface Auth {
  readonly issuer: string;
  /** The client credential that the token was issued to. */
  readonly clientId: string;
  /** `sub`, if the token has one. */
  readonly subject: string | undefined;
  /** `jti`, if the token has one. */
  readonly tokenId: string | undefined;
  readonly scopes: readonly string[];
  /** Generation of the client credential; `undefined` if the check is switched off. */
  readonly generation: number | undefined;
  /** `exp` in ms since the epoch. */
  readonly expiresAtMs: number;
  /** The whole payload of the token. */
  readonly claims: Readonly<Record<string, unknown>>;
}

/** What a gate or a guard decided about one request, for operators. Contains no token. */
export interface Decision {
  readonly outcome: 'authenticated' | 'anonymous' | 'refused';
  /** Present when refused. */
  readonly reason?: Reason;
  /** HTTP status, present when refused. */
  readonly status?: number;
  /** The refusal with `cause` and `privateDetail`. */
  readonly error?: AuthError;
  /** Present when the token was good, also when a guard then refused. */
  readonly auth?: Auth;
  readonly method: string;
  /** Path without its query, and without anything that can be a token. */
  readonly path: string;
  readonly requestId?: string;
}
