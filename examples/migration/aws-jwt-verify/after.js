'use strict';
const express = require('express');
const { authenticate, requireScope } = require('tillgate');

const app = express();
app.use(
  authenticate({
    preset: 'cognito',
    issuer: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_EXAMPLE',
    jwksUri: process.env.JWKS_URI, // leave it out: it is discovered
    audience: false, // access tokens of Cognito name no API
    clientIds: ['till-7'],
    scopes: { map: { 'commerce/orders:read': 'orders:read' } },
  }),
);
app.get('/orders', requireScope('orders:read'), (req, res) => {
  res.json({ caller: req.auth.clientId });
});

module.exports = app;
