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
export async function createMetrics(isReady: () => boolean): Promise<Metrics | undefined> {
  const prometheus = await loadPrometheus();
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

async function loadPrometheus(): Promise<typeof Prometheus | undefined> {
  try {
    return await import('prom-client');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code?.endsWith('MODULE_NOT_FOUND')) return undefined;
    throw error;
  }
}
