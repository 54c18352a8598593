import type * as Prometheus from 'prom-client';
import type { RequestEvent } from './request-observer';

/** Counts requests; exposes the counters in Prometheus' text format. */
export interface Metrics {
  readonly contentType: string;
  observe(event: RequestEvent): void;
  text(): Promise<string>;
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
  return {
    contentType: registry.contentType,
    observe({ method, status, reason = '', durationMs }) {
      requests.inc({ method, status, reason });
      durations.observe(durationMs / 1000);
    },
    text: () => registry.metrics(),
  };
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
