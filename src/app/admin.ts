import express from 'express';
import type { Express } from 'express';
import { problemHandler, sendProblem } from '../index';
import { healthRoutes } from './health';
import type { Readiness } from './health';
import type { Metrics } from './metrics';
import { notFound } from './problem-pages';

/** Options of {@link createAdminApp}. */
export interface AdminOptions {
  readonly readiness: () => Readiness;
  /** `undefined`: prom-client is not installed; `/metrics` responds with 503. */
  readonly metrics: Metrics | undefined;
  /** Base URL of the problem pages. */
  readonly problemTypes: string;
}

/** The app of the admin port: `/livez`, `/readyz` and `/metrics`, without tokens; keep the port off the public network. */
export function createAdminApp({ readiness, metrics, problemTypes }: AdminOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.use(healthRoutes(readiness, problemTypes));
  app.get('/metrics', async function serveMetrics(req, res) {
    if (metrics) {
      res.set('Content-Type', metrics.contentType).send(await metrics.text());
      return;
    }
    const code = 'metrics_unavailable';
    sendProblem(req, res, {
      status: 503,
      type: problemTypes + code,
      code,
      title: 'Metrics unavailable',
      detail: 'Metrics are made by prom-client, which is not installed: npm install prom-client@15',
    });
  });
  app.use(notFound(problemTypes));
  app.use(problemHandler({ problemTypes }));
  return app;
}
