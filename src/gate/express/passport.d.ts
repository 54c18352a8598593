/**
 * The little of passport and passport-http-bearer that is used. Their published types add `req.user` and `req.login`
 * to every Express app and depend on koa's; nothing of them may reach the package's own declarations.
 */
declare module 'passport' {
  interface BearerRequest<User> {
    readonly headers: { authorization: string };
    readonly body: undefined;
    readonly query: undefined;
    auth: User | undefined;
  }
  interface Options {
    readonly session: false;
    readonly assignProperty: 'auth';
    readonly authInfo: false;
    readonly failWithError: true;
  }
  class Authenticator {
    use(strategy: object): this;
    authenticate<User>(
      name: string,
      options: Options,
    ): (req: BearerRequest<User>, res: object, next: (error?: Error) => void) => void;
  }
}

declare module 'passport-http-bearer' {
  type Done = (error: unknown, user: object) => void;
  interface Options {
    readonly passReqToCallback: false;
    readonly scope: undefined;
    readonly realm: string;
  }
  class Strategy {
    constructor(options: Options, verify: (token: string, done: Done) => void);
  }
}
