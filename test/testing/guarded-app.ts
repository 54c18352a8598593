import express from 'express';
import request from 'supertest';
import { authenticate, requireScope } from '../../src/gate/index';
import type { AuthenticateOptions, Gate } from '../../src/gate/index';

/** An app with one guarded route. */
export interface GuardedApp {
  readonly gate: Gate;
  /** Calls the route with a token. */
  call(this: void, token: string): Promise<request.Response>;
  /** Status, and the `code` of the problem where there is one. */
  outcome(this: void, token: string): Promise<string>;
}

/** Makes a typical app: `GET /orders` with `requireScope('orders:read')`. */
export function guardedApp(options: AuthenticateOptions): GuardedApp {
  const logger = { info() {}, warn() {}, error() {} };
  const gate = authenticate({ logger, ...options });
  const app = express();
  app.use(gate);
  app.get('/orders', requireScope('orders:read'), (req, res) => void res.json({ caller: req.auth?.clientId }));

  async function call(token: string): Promise<request.Response> {
    return request(app).get('/orders').set('Authorization', `Bearer ${token}`);
  }
  async function outcome(token: string): Promise<string> {
    const { status, body } = await call(token);
    return [status, body.code].filter(Boolean).join(' ');
  }
  return { gate, call, outcome };
}
