/**
 * The little of passport and passport-http-bearer that is used. Their published types add `req.user` and `req.login`
 * to every Express app and depend on koa's; nothing of them may reach the package's own declarations.
 */
declare module 'passport' {
  type Callback<User> = (error: unknown, user?: User | false) => void;
  interface BearerRequest {
    readonly headers: { readonly authorization: string };
    readonly body: undefined;
    readonly query: undefined;
  }
  class Authenticator {
    use(strategy: object): this;
    authenticate<User>(
      name: string,
      options: { readonly session: false },
      callback: Callback<User>,
    ): (req: BearerRequest, res: object, next: (error?: unknown) => void) => void;
  }
  export { Authenticator };
}

declare module 'passport-http-bearer' {
  type Done = (error: unknown, user?: object | false) => void;
  interface Options {
    readonly passReqToCallback: false;
    readonly scope: undefined;
    readonly realm: string;
  }
  class Strategy {
    constructor(options: Options, verify: (token: string, done: Done) => void);
  }
  export { Strategy };
}
