'use strict';
const OktaJwtVerifier = require('@okta/jwt-verifier');
const express = require('express');

const verifier = new OktaJwtVerifier({
  issuer: process.env.OKTA_ISSUER,
  assertClaims: { cid: 'till-7' },
  testing: { disableHttpsCheck: true }, // the issuer of the test
});

const app = express();
app.use(async (req, res, next) => {
  try {
    const token = req.headers.authorization?.replace(/^Bearer /, '') ?? '';
    req.claims = (await verifier.verifyAccessToken(token, 'api://orders')).claims;
  } catch {
    return res.sendStatus(401);
  }
  next();
});
app.get('/orders', (req, res) => {
  if (!req.claims.scp.includes('orders:read')) return res.sendStatus(403);
  res.json({ caller: req.claims.cid });
});

module.exports = app;
