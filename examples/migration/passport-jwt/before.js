'use strict';
const express = require('express');
const { passportJwtSecret } = require('jwks-rsa');
const passport = require('passport');
const { ExtractJwt, Strategy } = require('passport-jwt');

passport.use(
  new Strategy(
    {
      jwtFromRequest: ExtractJwt.fromAuthHeaderAsBearerToken(),
      secretOrKeyProvider: passportJwtSecret({ jwksUri: process.env.JWKS_URI, cache: true }),
      issuer: process.env.ISSUER,
      audience: 'https://api.example.com',
      algorithms: ['RS256'],
    },
    (claims, done) => done(null, claims),
  ),
);
const hasScope = (scope) => (req, res, next) =>
  (req.user.scope ?? '').split(' ').includes(scope) ? next() : res.sendStatus(403);

const app = express();
app.use(passport.authenticate('jwt', { session: false }));
app.get('/orders', hasScope('orders:read'), (req, res) => {
  res.json({ caller: req.user.client_id });
});

module.exports = app;
