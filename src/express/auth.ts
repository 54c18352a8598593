/** Who calls: what a verified access token says about the client. Frozen; shared by all requests with the same token. */
export interface Auth {
  readonly issuer: string;
  /** The client credential that the token was issued to. */
  readonly clientId: string;
  /** `sub`, where the issuer gives one. */
  readonly subject: string | undefined;
  /** `jti`, where the issuer gives one. */
  readonly tokenId: string | undefined;
  readonly scopes: readonly string[];
  /** Generation of the client credential; `undefined` where the check is switched off. */
  readonly generation: number | undefined;
  /** `exp` in ms since the epoch. */
  readonly expiresAtMs: number;
  /** The whole payload of the token. */
  readonly claims: Readonly<Record<string, unknown>>;
}

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- the one way to type a member of Express's request
  namespace Express {
    interface Request {
      /**
       * Who calls, behind `authenticate()`; `undefined` where `optional` let a request without a token pass. An accessor
       * that the requests of Express share, so `{ ...req }` does not copy it.
       */
      auth?: Auth;
    }
  }
}
