import { Authenticator } from 'passport';
import { Strategy as BearerStrategy } from 'passport-http-bearer';
import { AuthError } from '../core/auth-error';
import type { Auth } from './auth';

/** Hands a token to passport; `done` is called exactly once. */
export type BearerCheck = (token: string, done: (error: unknown, auth?: Auth) => void) => void;

/**
 * Wires a verification into passport's bearer strategy.
 *
 * Passport sees a request that holds the Authorization header and nothing else: so it can neither take a token from
 * query or body, nor add its members to the user's request, nor write to the answer. The strategy is registered by
 * name, because passport runs an instance that is passed directly for all requests at once, and two that overlap
 * would be told each other's verdict.
 */
export function bearerCheck(verify: (token: string) => Auth | Promise<Auth>): BearerCheck {
  const passport = new Authenticator();
  passport.use(
    new BearerStrategy((token, done) => {
      let verdict: Auth | Promise<Auth>;
      try {
        verdict = verify(token);
      } catch (error) {
        return done(error);
      }
      if (!(verdict instanceof Promise)) return done(null, verdict);
      // Both handlers are given at once: an error that `done` throws must not come back as a second verdict.
      verdict.then(
        (auth) => done(null, auth),
        (error: unknown) => done(error),
      );
    }),
  );
  const run = passport.authenticate('bearer', {
    session: false,
    assignProperty: 'auth',
    authInfo: false,
    failWithError: true,
  });
  const nowhere = { setHeader() {} };

  return function checkBearer(token, done) {
    const carrier: { headers: { authorization: string }; auth?: Auth } = {
      headers: { authorization: `Bearer ${token}` },
    };
    run(carrier, { ...nowhere }, (error) => {
      if (error === undefined && carrier.auth) done(undefined, carrier.auth);
      else done(error instanceof Error && isOurs(error) ? error : refusedByPassport());
    });
  };
}

/** Passport's own failure says only that it found no token; the shape was checked before, so this is a defence in depth. */
function refusedByPassport(): AuthError {
  return new AuthError('malformed_authorization', { privateDetail: 'passport found no bearer token' });
}

function isOurs(error: Error): boolean {
  return error.name !== 'AuthenticationError';
}
