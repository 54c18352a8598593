import { createRequire } from 'node:module';
import { hasScope } from './by-hand.mjs';

const require = createRequire(import.meta.url);

/** passport-http-bearer, jsonwebtoken and jwks-rsa, connected by hand. */
export function mount(app, { issuer, audience, algorithm, jwksUri, respond }) {
  const { Passport } = require('passport');
  const { Strategy } = require('passport-http-bearer');
  const jsonwebtoken = require('jsonwebtoken');
  const client = require('jwks-rsa')({ jwksUri, cache: true, rateLimit: true });
  const passport = new Passport();
  const keyOf = (header, done) => {
    client.getSigningKey(header.kid, (error, key) => done(error, key?.getPublicKey()));
  };
  passport.use(
    new Strategy((token, done) => {
      jsonwebtoken.verify(token, keyOf, { issuer, audience, algorithms: [algorithm] }, (error, claims) => {
        done(null, error ? false : claims);
      });
    }),
  );
  app.use('/v1', passport.authenticate('bearer', { session: false, assignProperty: 'auth' }));
  app.get('/v1/orders', hasScope('orders:read'), respond);
}
