/**
 * The little of passport and passport-http-bearer that is used. Their published types add `req.user` and `req.login`
 * to everybody's Express and pull in koa's; nothing of them may reach the package's own declarations.
 */
declare module 'passport' {
  interface CarrierRequest {
    readonly headers: { readonly authorization: string };
  }
  interface CarrierResponse {
    statusCode?: number;
    setHeader(): void;
  }
  interface AuthenticateOptions {
    readonly session: false;
    /** Member of the request that a success is put into. */
    readonly assignProperty: string;
    readonly authInfo: false;
    readonly failWithError: true;
  }
  class Authenticator {
    use(strategy: object): this;
    authenticate(
      name: string,
      options: AuthenticateOptions,
    ): (req: CarrierRequest, res: CarrierResponse, next: (error?: unknown) => void) => void;
  }
  export { Authenticator };
}

declare module 'passport-http-bearer' {
  type Done = (error: unknown, user?: object | false) => void;
  class Strategy {
    constructor(verify: (token: string, done: Done) => void);
  }
  export { Strategy };
}
