import { Authenticator } from 'passport';
import { Strategy as BearerStrategy } from 'passport-http-bearer';
import { AuthError } from '../core/auth-error';
import type { Auth } from './auth';

/**
 * Puts passport's bearer strategy before a verification.
 *
 * Passport sees a request with one header and nothing else: so it cannot take a token from query or body, add members
 * to the app's request, or write a response. The strategy is registered by name, because passport shares an instance
 * that is passed directly between all requests, and two that overlap would get each other's result.
 */
export function throughPassport(verify: (token: string) => Promise<Auth>): (token: string) => Promise<Auth> {
  const passport = new Authenticator();
  const strategy = new BearerStrategy({ passReqToCallback: false, scope: undefined, realm: 'api' }, (token, done) => {
    verify(token).then((auth) => done(null, auth), done);
  });
  passport.use(strategy);

  return function verifyByStrategy(token) {
    return new Promise((resolve, reject) => {
      const decide = (error: unknown, auth?: Auth | false): void => {
        if (auth) resolve(auth);
        else reject((error as Error | null) ?? new AuthError('malformed_authorization', { privateDetail: NO_TOKEN }));
      };
      const headers = { authorization: `Bearer ${token}` };
      passport.authenticate('bearer', { session: false }, decide)(
        { headers, body: undefined, query: undefined },
        {},
        decide,
      );
    });
  };
}

const NO_TOKEN = 'passport found no bearer token';
