'use strict';
const express = require('express');
const { authenticate, requireScope } = require('tillgate');

const app = express();
app.use(
  authenticate({
    issuer: process.env.ISSUER,
    jwksUri: process.env.JWKS_URI, // or leave it out: it is discovered
    audience: 'https://api.example.com',
  }),
);
app.get('/orders', requireScope('orders:read'), (req, res) => {
  res.json({ caller: req.auth.clientId });
});

module.exports = app;
