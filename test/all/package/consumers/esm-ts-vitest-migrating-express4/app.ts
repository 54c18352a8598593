import express from 'express';
import type { Express, Request } from 'express';
import { auth } from 'express-oauth2-jwt-bearer';
import { authenticate, authOf, requireClaim, requireScope } from 'tillgate';
import type { AuthenticateOptions } from 'tillgate';

const OTHER_LOGIN = { issuerBaseURL: 'https://login.test', audience: 'https://api.test', tokenSigningAlg: 'RS256' };

/** A route that is not migrated yet: both packages declare a type of req.auth, and it is that of the other one. */
export function addOldRoute(app: Express): void {
  app.get('/old/orders', auth(OTHER_LOGIN), (req, res) => {
    const subject: string | undefined = req.auth?.payload.sub;
    res.json({ subject });
  });
}

/** The routes that are migrated: authOf() is the typed way to their caller. */
export function createApp(options: AuthenticateOptions): Express {
  const app = express();
  app.use('/v1', authenticate(options));
  const ofClient = requireClaim('client_id', (value, req: Request) => value === authOf(req)?.clientId && req.ip !== '');
  app.get('/v1/orders', requireScope('orders:read'), ofClient, (req, res) => {
    res.json({ caller: authOf(req)?.clientId });
  });
  app.post('/v1/orders', requireScope('orders:read', 'orders:write'), (req, res) => {
    res.status(201).json({ caller: authOf(req)?.clientId });
  });
  return app;
}
