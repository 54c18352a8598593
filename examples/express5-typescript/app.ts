import express from 'express';
import type { Express } from 'express';
import { authenticate, problemHandler, requireScope } from 'tillgate';
import type { AuthenticateOptions } from 'tillgate';

/** Makes the API. Without options for the gate, authenticate() reads the TILLGATE_* variables. */
export function createApp(gate?: AuthenticateOptions): Express {
  const app = express();
  app.get('/livez', (_req, res) => void res.send('ok'));
  app.use('/v1', authenticate(gate));
  app.get('/v1/orders', requireScope('orders:read'), (req, res) => {
    res.json({ caller: req.auth?.clientId, data: [] });
  });
  app.use(problemHandler());
  return app;
}
