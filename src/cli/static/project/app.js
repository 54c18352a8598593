import express from 'express';
import { authenticate, problemHandler, requireScope } from 'tillgate';

// What happens to a request: the gate authenticates it, a guard per route asks for scopes, then your handler runs.
// Without options for the gate, authenticate() reads the TILLGATE_* variables; see .env.example.
export function createApp({ gate } = {}) {
  const app = express();
  app.use('/v1', authenticate(gate));
  app.get('/v1/orders', requireScope('orders:read'), (req, res) => {
    res.json({ caller: req.auth.clientId, data: [] });
  });
  app.use(problemHandler());
  return app;
}
