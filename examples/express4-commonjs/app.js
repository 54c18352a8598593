'use strict';
const express = require('express');
const { authenticate, problemHandler, requireScope } = require('tillgate');

/** Makes the API. Without options for the gate, authenticate() reads the TILLGATE_* variables. */
function createApp(gateOptions) {
  const app = express();
  app.get('/livez', (req, res) => res.send('ok'));
  app.use('/v1', authenticate(gateOptions));
  app.get('/v1/orders', requireScope('orders:read'), (req, res) => {
    res.json({ caller: req.auth.clientId, data: [] });
  });
  app.use(problemHandler());
  return app;
}

module.exports = { createApp };
