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

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- declares a member of Express's request
  namespace Express {
    interface Request {
      /** The caller; `undefined` before `authenticate()`, and after an optional one for a request without a token. */
      auth?: Auth | undefined;
    }
  }
}
