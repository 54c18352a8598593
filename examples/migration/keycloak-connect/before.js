'use strict';
const express = require('express');
const Keycloak = require('keycloak-connect');

// The content of keycloak.json.
const keycloak = new Keycloak(
  {},
  {
    realm: 'shop',
    'auth-server-url': process.env.KEYCLOAK_URL,
    resource: 'orders-api',
    'bearer-only': true,
    'verify-token-audience': true,
    'ssl-required': 'external',
    'confidential-port': 0,
  },
);

const app = express();
app.use(keycloak.middleware());
app.get('/orders', keycloak.protect('realm:till'), (req, res) => {
  res.json({ caller: req.kauth.grant.access_token.content.azp });
});
app.get('/stock', keycloak.protect('stock-reader'), (req, res) => res.json([])); // a role of orders-api
app.get('/reports', keycloak.protect('back-office:manager'), (req, res) => res.json([]));
app.get(
  '/refunds',
  keycloak.protect((token) => token.hasRealmRole('till') && token.hasRole('refunder')),
  (req, res) => res.json([]),
);

module.exports = app;
