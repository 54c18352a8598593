import express from 'express';
import type { Express } from 'express';
import { authenticate, requireScope } from 'tillgate';
import type { AuthenticateOptions } from 'tillgate';

export function createApp(options: AuthenticateOptions): Express {
  const app = express();
  app.use('/v1', authenticate(options));
  app.get('/v1/orders', requireScope('orders:read'), (req, res) => {
    res.json({ caller: req.auth?.clientId });
  });
  app.post('/v1/orders', requireScope('orders:read', 'orders:write'), (req, res) => {
    res.status(201).json({ caller: req.auth?.clientId });
  });
  return app;
}
