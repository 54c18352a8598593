import express from 'express';
import type { Express } from 'express';
import { problemHandler, sendProblem } from '../index';
import { healthRoutes } from './health';
import type { Readiness } from './health';
import type { Metrics } from './metrics';
import { notFound } from './not-found';

/** What the admin port shows. */
export interface AdminOptions {
  readonly readiness: () => Readiness;
  /** `undefined`: prom-client is not installed, and `/metrics` says so. */
  readonly metrics: Metrics | undefined;
}

/** The app of the admin port: `/livez`, `/readyz` and `/metrics`, without tokens; keep the port off the public network. */
export function createAdminApp({ readiness, metrics }: AdminOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.use(healthRoutes(readiness));
  app.get('/metrics', async function serveMetrics(req, res) {
    if (metrics) {
      res.set('Content-Type', metrics.contentType).send(await metrics.text());
      return;
    }
    sendProblem(req, res, {
      status: 503,
      title: 'Metrics unavailable',
      detail: 'Metrics are made by prom-client, which is not installed: npm install prom-client@15',
      code: 'metrics_unavailable',
    });
  });
  app.use(notFound);
  app.use(problemHandler());
  return app;
}
