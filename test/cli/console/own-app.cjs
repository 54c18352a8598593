'use strict';
// A user's app, for `tillgate dev --app`.
const express = require('express');
const { authenticate, requireScope } = require('../../../src/gate/index.ts');

module.exports = function createApp({ gate }) {
  const app = express();
  app.use(authenticate(gate));
  app.get('/reports', requireScope('reports:read'), (_req, res) => res.json([]));
  return app;
};
