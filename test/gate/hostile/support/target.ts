import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { RequestListener } from 'node:http';
import type { Request } from 'express';
import { createApp } from '../../../../src/app/app';
import { createLog } from '../../../../src/app/log';
import { startServer } from '../../../../src/app/server';
import { appSettings } from '../../../../src/app/settings';
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
  const log = createLog('trace', { write: (line) => void lines.push(line) });
  const variables = { TILLGATE_ISSUER: ISSUER, TILLGATE_BASE_URL: AUDIENCE, TILLGATE_RATE_LIMIT: 'off' };
  const { app, close } = createApp({
    ...appSettings(variables),
    gate: {
      issuer: ISSUER,
      audience: AUDIENCE,
      // As the scaffold's .env.example and deploy/ say.
      generationClaim: 'generation',
      keys: { keys: PUBLISHED },
      exposeReasons,
      clock: () => NOW_MS,
    },
    log,
  });
  const server = await startServer(recording(app, reached), { host: '127.0.0.1', port: 0, baseUrl: AUDIENCE, log });
  return {
    port: server.port,
    exposeReasons,
    reached,
    lines,
    connections,
    async close() {
      unsubscribe('net.client.socket', count);
      await server.close();
      await close();
    },
  };
}

/** The same app; records the requests that reached a handler of `/v1/orders`: the 2xx of a placeholder. */
function recording(app: RequestListener, reached: string[]): RequestListener {
  return (req, res) => {
    res.once('finish', () => {
      const { route } = req as Request;
      if (res.hasHeader('X-Placeholder') && res.statusCode < 300)
        reached.push(`${req.method} /v1${String(route.path).replace(':id', '{id}')}`);
    });
    app(req, res);
  };
}
