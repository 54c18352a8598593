/**
 * The little of passport and passport-http-bearer that is used. Their published types add `req.user` and `req.login`
 * to every Express app and depend on koa's; nothing of them may reach the package's own declarations.
 */
declare module 'passport' {
  interface BearerRequest<User> {
    readonly headers: { authorization: string };
    readonly body: undefined;
    readonly query: undefined;
    /** Members of our own. */
    caller: object | undefined;
    verifier: object | undefined;
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
  export { Authenticator, BearerRequest };
}

declare module 'passport-http-bearer' {
  import type { BearerRequest } from 'passport';
  type Done = (error: unknown, user?: object | false) => void;
  interface Options {
    readonly passReqToCallback: true;
    readonly scope: undefined;
    readonly realm: string;
  }
  class Strategy {
    constructor(options: Options, verify: (req: BearerRequest<object>, token: string, done: Done) => void);
  }
  export { Strategy };
}
