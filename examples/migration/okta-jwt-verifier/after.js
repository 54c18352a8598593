'use strict';
const express = require('express');
const { authenticate, requireScope } = require('tillgate');

const app = express();
app.use(
  authenticate({
    preset: 'okta',
    issuer: process.env.OKTA_ISSUER,
    audience: 'api://orders',
    clientIds: ['till-7'],
  }),
);
app.get('/orders', requireScope('orders:read'), (req, res) => {
  res.json({ caller: req.auth.clientId });
});

module.exports = app;
