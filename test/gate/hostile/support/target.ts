import { Router } from 'express';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { requireScope } from '../../../../src/gate';
import { readSettings } from '../../../../src/gate/env/settings';
import { createApp, createLog } from '../../../../src/app';
import { logUnreadable } from '../../../../src/app/log';
import { startServer } from '../../../../src/app/serve';
import { RESOURCES, routesOf } from '../../../../src/app/commerce/resources';
import { AUDIENCE, ISSUER, NOW_MS } from '../../../support/issuer';
import { PUBLISHED } from './forge';

/** The running scaffold, with a record of what it did. */
export interface Target {
  readonly port: number;
  /** Whether a 401 says why, as in development. */
  readonly exposeReasons: boolean;
  /** Requests that reached a handler of `/v1/orders`: `GET /v1/orders`. */
  readonly reached: string[];
  /** Lines of the log, as they were written. */
  readonly lines: string[];
  /** Connections that were opened in this process since the last reset, those of the attacker included. */
  readonly connections: { count: number };
  close(): Promise<void>;
}

/** Starts the scaffold on loopback; the keys of the test issuer are given, so it has no reason to open a connection. */
export async function openTarget(exposeReasons = true): Promise<Target> {
  const reached: string[] = [];
  const lines: string[] = [];
  const connections = { count: 0 };
  const count = (): void => void connections.count++;
  subscribe('net.client.socket', count);
  const logger = createLog({ level: 'trace', destination: { write: (line) => void lines.push(line) } });
  const app = createApp({
    settings: readSettings({ TILLGATE_ISSUER: ISSUER, TILLGATE_BASE_URL: AUDIENCE, TILLGATE_RATE_LIMIT: 'off' }),
    gate: {
      issuer: ISSUER,
      audience: AUDIENCE,
      keys: { keys: PUBLISHED },
      exposeReasons,
      clock: () => NOW_MS,
    },
    replace: { orders: recordingOrders(reached) },
    logger,
  });
  const onUnreadable = logUnreadable.bind(undefined, logger);
  const server = await startServer(app.handler, { host: '127.0.0.1', port: 0, onUnreadable });
  return {
    port: server.port,
    exposeReasons,
    reached,
    lines,
    connections,
    async close() {
      unsubscribe('net.client.socket', count);
      await server.close();
      await app.close();
    },
  };
}

/** The routes and guards of `/v1/orders`, with handlers that only record that they were reached. */
function recordingOrders(reached: string[]): Router {
  const router = Router();
  const orders = RESOURCES.filter(({ path }) => path === 'orders');
  for (const route of orders.flatMap(routesOf)) {
    const path = route.path.replace('/v1/orders', '').replace('{id}', ':id') || '/';
    const method = route.method.toLowerCase() as Lowercase<typeof route.method>;
    router[method](path, requireScope(route.scopes), (req, res) => {
      reached.push(`${req.method} ${route.path}`);
      res.json({ reached: true });
    });
  }
  return router;
}
