'use strict';
const { CognitoJwtVerifier } = require('aws-jwt-verify');
const express = require('express');

const verifier = CognitoJwtVerifier.create({
  userPoolId: 'eu-central-1_EXAMPLE',
  tokenUse: 'access',
  clientId: ['till-7'],
});

const app = express();
app.use(async (req, res, next) => {
  try {
    req.claims = await verifier.verify(req.headers.authorization?.replace(/^Bearer /, '') ?? '');
  } catch {
    return res.sendStatus(401);
  }
  next();
});
app.get('/orders', (req, res) => {
  if (!req.claims.scope.split(' ').includes('commerce/orders:read')) return res.sendStatus(403);
  res.json({ caller: req.claims.client_id });
});

module.exports = Object.assign(app, { verifier });
