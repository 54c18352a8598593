'use strict';
const express = require('express');
const { authenticate, requireScope } = require('tillgate');

const TENANT = '8c1c6a1b-0000-4000-8000-000000000001';
const API = '4d2f0e7a-0000-4000-8000-000000000002';
const common = {
  preset: 'entra',
  audience: [API, `api://${API}`], // of tokens of version 2, and of version 1
  // Delegated permissions of people, application permissions of machines.
  scopes: { from: ['scp', 'roles'] },
  jwksUri: process.env.JWKS_URI, // leave it out: it is discovered
};

const app = express();
app.use(
  authenticate({
    // Each tenant that may call has a row for each version of tokens that it gets.
    issuers: [
      { ...common, issuer: `https://login.microsoftonline.com/${TENANT}/v2.0` },
      {
        ...common,
        issuer: `https://sts.windows.net/${TENANT}/`,
        authUrl: `https://login.microsoftonline.com/${TENANT}`,
      },
    ],
  }),
);
app.get('/orders', requireScope('orders:read'), (req, res) => {
  res.json({ caller: req.auth.clientId });
});

module.exports = app;
