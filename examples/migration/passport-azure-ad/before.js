'use strict';
// Not run by the test: passport-azure-ad is deprecated, and fetches keys from Microsoft only.
const express = require('express');
const passport = require('passport');
const { BearerStrategy } = require('passport-azure-ad');

const TENANT = '8c1c6a1b-0000-4000-8000-000000000001';
passport.use(
  new BearerStrategy(
    {
      identityMetadata: `https://login.microsoftonline.com/${TENANT}/v2.0/.well-known/openid-configuration`,
      clientID: '4d2f0e7a-0000-4000-8000-000000000002',
      audience: 'api://4d2f0e7a-0000-4000-8000-000000000002',
      validateIssuer: true,
      scope: ['orders:read'],
    },
    (token, done) => done(null, token),
  ),
);

const app = express();
app.use(passport.authenticate('oauth-bearer', { session: false }));
app.get('/orders', (req, res) => res.json({ caller: req.user.azp ?? req.user.appid }));

module.exports = app;
