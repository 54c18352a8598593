'use strict';
const express = require('express');
const { authenticate, requireScope } = require('tillgate');

const gate = authenticate({
  preset: 'keycloak',
  issuer: `${process.env.KEYCLOAK_URL}/realms/shop`,
  audience: 'orders-api',
  // With prefixes, so that a realm role and a role of a client that have one name stay two.
  scopes: {
    from: [
      'scope',
      { claim: 'realm_access.roles', prefix: 'realm:' },
      { claim: 'resource_access.orders-api.roles', prefix: 'orders-api:' },
      { claim: 'resource_access.back-office.roles', prefix: 'back-office:' },
    ],
  },
});

const app = express();
app.use(gate);
app.get('/orders', requireScope('realm:till'), (req, res) => {
  res.json({ caller: req.auth.clientId });
});
app.get('/stock', requireScope('orders-api:stock-reader'), (req, res) => res.json([]));
app.get('/reports', requireScope('back-office:manager'), (req, res) => res.json([]));
app.get('/refunds', requireScope('realm:till', 'orders-api:refunder'), (req, res) => res.json([]));

module.exports = app;
