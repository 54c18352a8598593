/** Options of `createClient()`. */
export interface ClientOptions {
  /** Token endpoint: `{auth_url}/connect/token`. */
  readonly tokenUrl: string | URL;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Scopes to request, separated by one space. Default: none, so that the authorization server decides. */
  readonly scope?: string | undefined;
  /** The API. The token is sent to this URL and to URLs below it, and nowhere else. */
  readonly baseUrl: string | URL;
  /**
   * How the client authenticates at the token endpoint (RFC 6749 section 2.3.1): `basic` in the Authorization header,
   * `post` in the form. Default: `basic`.
   */
  readonly auth?: 'basic' | 'post' | undefined;
  /** Further fields of the token request, for example `audience` or `resource` (RFC 8707). Default: none. */
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  /** Sends every request. Default: the global `fetch`, looked up at each request. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Time in ms. Default: `performance.now()`, because a wall clock that is set back would stretch the waits. */
  readonly clock?: (() => number) | undefined;
  /** Waits for `ms`; `signal` is that of the call which waits, if it has one. Default: `setTimeout()`. */
  readonly sleep?: ((ms: number, signal?: AbortSignal) => Promise<unknown>) | undefined;
}

/** A token and what its response said. It is a secret: do not log it. */
export interface IssuedToken {
  readonly accessToken: string;
  /** When it expires, in ms of the option `clock`. */
  readonly expiresAtMs: number;
  /** The scopes that were granted; `undefined` if the response names none (RFC 6749 section 5.1: those that were requested). */
  readonly scope: string | undefined;
  /** The whole token response (RFC 6749 section 5.1). */
  readonly response: Readonly<Record<string, unknown>>;
}

/** Calls one API with the token of one client credential. */
export interface Client {
  /**
   * `fetch()` with the client's token. When the API refuses the token as invalid, the call is sent again with a new one.
   *
   * @param input - a path below `baseUrl`, which may begin with that of `baseUrl`, a URL, or a `Request`; URLs outside of `baseUrl` are fetched without a token
   * @throws TypeError when the caller sets an Authorization header
   * @throws TokenRequestError when the token endpoint gives no token
   */
  readonly fetch: typeof globalThis.fetch;
  /**
   * The token that the next call sends.
   *
   * @throws TokenRequestError when the token endpoint gives none
   */
  readonly token: () => Promise<IssuedToken>;
}
