import express, { Router } from 'express';
import type { Express, RequestHandler } from 'express';
import type * as Prometheus from 'prom-client';
import { addRecorder, BUCKETS, flushDurations, labelOf, METRIC_ROWS, readings } from 'tillgate/internal';
import type { Reading } from 'tillgate/internal';
import { problemHandler, sendProblem } from 'tillgate';
import type { RequestEvent } from './log';
import { notFound, serving } from './pages';

/** State of each component that the API needs, in one word: the response is public. */
export type ComponentStates = Readonly<Record<string, string>>;

/** What `/readyz` responds with. */
export interface Readiness {
  /** Whether requests should be sent here: every component is available, and the server is not stopping. */
  readonly ready: boolean;
  readonly draining: boolean;
  readonly components: ComponentStates;
}

/** `/livez` (the process runs) and `/readyz` (it accepts requests), for load balancers; both without a token. */
export function healthRoutes(readiness: () => Readiness, problemTypes: string): RequestHandler {
  const router = Router();
  router.get('/livez', function livez(_req, res) {
    res.set('Cache-Control', 'no-store').json({ status: 'alive' });
  });
  router.get('/readyz', function readyz(req, res) {
    const { ready, draining, components } = readiness();
    if (ready) {
      res.set('Cache-Control', 'no-store').json({ status: 'ready', components });
      return;
    }
    const code = draining ? 'draining' : 'not_ready';
    sendProblem(req, res, {
      status: 503,
      type: problemTypes + code,
      code,
      title: 'Not ready',
      detail: draining ? 'The server is stopping.' : 'Something that the API needs is not available yet.',
      headers: { 'Retry-After': '1' },
      members: { components },
    });
  });
  return serving(router, '/livez', '/readyz');
}

/**
 * The app of the admin port: `/livez`, `/readyz` and `/metrics`, without tokens; keep the port off the public network.
 * Without `metrics`, `/metrics` responds with 503.
 */
export function createAdminApp(
  readiness: () => Readiness,
  metrics: Metrics | undefined,
  problemTypes: string,
): Express {
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

/** Counts requests; exposes the counters in Prometheus' text format. */
interface Metrics {
  readonly contentType: string;
  observe(event: RequestEvent): void;
  text(): Promise<string>;
  /** Stops recording. */
  close(): void;
}

/**
 * Metrics by prom-client, an optional peer dependency: `undefined` if it is not installed. The number of label values is
 * bounded: no path and no client id.
 */
export function createMetrics(isReady: () => boolean): Metrics | undefined {
  const prometheus = loadPrometheus();
  if (!prometheus) return undefined;
  const { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } = prometheus;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'tillgate_requests_total',
    help: 'Responses by method, status and reason of the refusal (empty: not refused).',
    labelNames: ['method', 'status', 'reason'],
    registers: [registry],
  });
  const durations = new Histogram({
    name: 'tillgate_request_duration_seconds',
    help: 'Time from the head of the request to the end of the response.',
    registers: [registry],
  });
  new Gauge({
    name: 'tillgate_ready',
    help: '1 while /readyz responds with 200.',
    registers: [registry],
    collect() {
      this.set(isReady() ? 1 : 0);
    },
  });
  const histograms = new Map<string, Prometheus.Histogram>();
  for (const { name, kind, prometheus: exposed, labels, meaning: help } of METRIC_ROWS) {
    const common = { name: exposed, help, labelNames: labels, registers: [registry] };
    if (kind === 'histogram') {
      histograms.set(name, new Histogram({ ...common, buckets: BUCKETS, collect: flushDurations }));
      continue;
    }
    const Metric = kind === 'counter' ? Counter : Gauge;
    new Metric({
      ...common,
      collect(this: Prometheus.Counter | Prometheus.Gauge) {
        this.reset();
        for (const { attributes, value } of readings(name)) this.inc(labelled(attributes), value);
      },
    });
  }
  const close = addRecorder((name, seconds, attributes) => {
    histograms.get(name)?.observe(labelled(attributes), seconds);
  });
  return {
    contentType: registry.contentType,
    observe({ method, status, reason = '', durationMs }) {
      requests.inc({ method, status, reason });
      durations.observe(durationMs / 1000);
    },
    text: () => registry.metrics(),
    close,
  };
}

function labelled(attributes: Reading['attributes']): Reading['attributes'] {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [labelOf(name), value]));
}

function loadPrometheus(): typeof Prometheus | undefined {
  try {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import would make it a required peer
    return require('prom-client') as typeof Prometheus;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}
